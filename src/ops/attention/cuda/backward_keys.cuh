// dk and dv (attention.24).
#pragma once
#include "ops/attention/cuda/backward_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A tile of keys: dk and dv.
template <int kSlices>
struct GradKeys : GradBlock<kSlices> {
  using Base = GradBlock<kSlices>;
  using Base::g, Base::head, Base::p, Base::tx, Base::ty, Base::w;
  int64_t first_key;

  __device__ GradKeys(const BackwardParams& params, typename Base::Shared& shared, int64_t of_head,
                      int64_t first)
      : Base(params, shared, of_head), first_key(first) {
    this->template load_tile<true>(w.own[0], p.s.k, first_key, g.keys, g.d);
    this->template load_tile<true>(w.own[1], p.s.v, first_key, g.keys, g.dv);
  }
  // Loads what the rows of a tile see and keep; whether the tile must be computed.
  __device__ bool load_rows(int64_t first_row, TileSight& sight) const {
    __syncthreads();
    this->load_sight(first_row);
    if (const int r = threadIdx.x; r < kGradTile) {
      const int64_t row = head * g.rows + first_row + r;
      const bool there = first_row + r < g.rows;
      w.top[r] = there ? p.top[row] : 0.0f, w.mean[r] = there ? p.mean[row] : 0.0f;
      w.total[r] = there ? p.total[row] : 1.0f;
    }
    __syncthreads();
    sight = this->tile_sight(first_key);
    const float a = w.total[threadIdx.x % kWarp], b = w.total[threadIdx.x % kWarp + kWarp];
    if (sight.some || __any_sync(kFullWarp, a != a || b != b)) return true;
    return __syncthreads_or(this->template some_not_finite<false>(p.s.q, first_row, g.rows, g.d) ||
                            this->template some_not_finite<false>(p.grad, first_row, g.rows, g.dv));
  }
  // P and dS of a tile from products.
  __device__ void weigh(const TileSight& sight, F (&s)[kGradOwn][kGradOwn],
                        F (&dp)[kGradOwn][kGradOwn]) const {
#pragma unroll
    for (int c = 0; c < kGradOwn; ++c) {
      const int row = tx + c * kGradLanes;
      const F top = set1(w.top[row]), mean = set1(w.mean[row]);
      const num::INVAR_ISA_NS::Divisor total = num::INVAR_ISA_NS::divisor(set1(w.total[row]));
      const KeyRange see = this->range(row, first_key);
#pragma unroll
      for (int r = 0; r < kGradOwn; ++r) {
        const int at = kGradOwn * ty + r;
        F bend = zero(), x = this->score(s[r][c], row, first_key + at, bend);
        const bool seen = sight.all || (see.has(at) && this->unmasked(row, first_key + at));
        if (!seen) x = set1(-kInf);
        s[r][c] = flushed(num::INVAR_ISA_NS::quotient(exp_stored(sub(x, top)), total));
        dp[r][c] = this->of_score(s[r][c], dp[r][c], mean, bend);
        if (!seen) dp[r][c] = zero();
      }
    }
  }
  __device__ void add_tile(int64_t first_row, const TileSight& sight, F (&dk)[Base::kSums],
                           F (&dv)[Base::kSums]) const {
    constexpr bool kFour = Base::Shared::kFour;
    F s[kGradOwn][kGradOwn], dp[kGradOwn][kGradOwn];
    float* const grads = w.step[kFour];
    this->template load_tile<false>(w.step[0], p.s.q, first_row, g.rows, g.d);
    if (kFour) this->template load_tile<false>(grads, p.grad, first_row, g.rows, g.dv);
    __syncthreads();
    this->products(w.own[0], w.step[0], g.d, s);
    if (!kFour) {
      __syncthreads();
      this->template load_tile<false>(grads, p.grad, first_row, g.rows, g.dv);
      __syncthreads();
    }
    this->products(w.own[1], grads, g.dv, dp);
    weigh(sight, s, dp);
    this->put_tile(s);
    __syncthreads();
    this->accumulate(grads, g.dv, dv);
    __syncthreads();
    this->put_tile(dp);
    if (!kFour) this->template load_tile<false>(w.step[0], p.s.q, first_row, g.rows, g.d);
    __syncthreads();
    this->accumulate(w.step[0], g.d, dk);
  }
  __device__ void run() const {
    F dk[Base::kSums], dv[Base::kSums];
    F kept_k[num::kSumsKept][Base::kSums], kept_v[num::kSumsKept][Base::kSums];
    Base::clear(dk), Base::clear(dv);
    const int64_t blocks = num::contraction_blocks(g.rows);
    for (int64_t block = 0; block < blocks; ++block) {
      Base::clear(dk), Base::clear(dv);
      const num::Range range = num::block_range(block, g.rows);
      for (int64_t row = range.begin; row < range.end; row += kGradTile)
        if (TileSight sight; load_rows(row, sight)) add_tile(row, sight, dk, dv);
      const num::BlockPosition place = num::block_position(block, g.rows);
      Base::join(place, dk, kept_k), Base::join(place, dv, kept_v);
    }
    const auto at = [&](float* x, int64_t size) {
      return [=, this](int r) {
        return first_key + r < g.keys ? x + this->index_of_key(first_key + r) * size : nullptr;
      };
    };
    this->store_sums(dk, g.d, at(p.dk, g.d));
    this->store_sums(dv, g.dv, at(p.dv, g.dv));
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
