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
  // What the rows of a tile see and keep; whether the tile must be computed.
  __device__ bool load_rows(int64_t first_row) const {
    __syncthreads();
    this->load_sight(first_row);
    bool wanted = false;
    if (const int r = threadIdx.x; r < kGradTile) {
      const int64_t row = head * g.rows + first_row + r;
      const bool there = first_row + r < g.rows;
      w.top[r] = there ? p.top[row] : 0.0f, w.mean[r] = there ? p.mean[row] : 0.0f;
      w.total[r] = there ? p.total[row] : 1.0f;
      wanted = this->may_see(r, first_key) || w.total[r] != w.total[r];
    }
    if (__syncthreads_or(wanted)) return true;
    return __syncthreads_or(this->template some_not_finite<false>(p.s.q, first_row, g.rows, g.d) ||
                            this->template some_not_finite<false>(p.grad, first_row, g.rows, g.dv));
  }
  __device__ void add_tile(int64_t first_row, F (&dk)[Base::kSums], F (&dv)[Base::kSums]) const {
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
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r)
#pragma unroll
      for (int c = 0; c < kGradOwn; ++c) {
        const int row = tx + c * kGradLanes;
        const int64_t key = first_key + kGradOwn * ty + r;
        F bend = zero();
        const F score = this->score(s[r][c], row, key, bend);
        s[r][c] = canonicalize(div(grad_weight(score, set1(w.top[row])), set1(w.total[row])));
        dp[r][c] = this->of_score(s[r][c], dp[r][c], set1(w.mean[row]), bend, this->sees(row, key));
      }
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
    float kept_k[num::kSumsKept][Base::kSums], kept_v[num::kSumsKept][Base::kSums];
    Base::clear(dk), Base::clear(dv);
    const int64_t blocks = num::contraction_blocks(g.rows);
    for (int64_t block = 0; block < blocks; ++block) {
      Base::clear(dk), Base::clear(dv);
      const num::Range range = num::block_range(block, g.rows);
      for (int64_t row = range.begin; row < range.end; row += kGradTile)
        if (load_rows(row)) add_tile(row, dk, dv);
      const num::BlockPosition place = num::block_position(block, g.rows);
      Base::join(place, dk, kept_k), Base::join(place, dv, kept_v);
    }
    const auto at = [&](float* x, int64_t size) {
      return [=, this](int r) {
        return first_key + r < g.keys ? x + this->key_at(first_key + r) * size : nullptr;
      };
    };
    this->store_sums(dk, g.d, at(p.dk, g.d));
    this->store_sums(dv, g.dv, at(p.dv, g.dv));
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
