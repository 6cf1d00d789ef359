// What rows keep, and dq (attention.21 to attention.24).
#pragma once
#include "ops/attention/cuda/backward_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A tile of rows: top, total and mean, then dq.
template <int kSlices>
struct GradRows : GradBlock<kSlices> {
  using Base = GradBlock<kSlices>;
  using Base::g, Base::head, Base::p, Base::tx, Base::ty, Base::w;
  int64_t first_row, tiles;  // key tiles that any row sees end before `tiles`

  __device__ GradRows(const BackwardParams& params, typename Base::Shared& shared, int64_t of_head,
                      int64_t first)
      : Base(params, shared, of_head), first_row(first) {
    this->load_sight(first_row);
    this->template load_tile<false>(w.own[0], p.s.q, first_row, g.rows, g.d);
    this->template load_tile<false>(w.own[1], p.grad, first_row, g.rows, g.dv);
    __syncthreads();
    int64_t end = 0;
    for (int r = 0; r < kGradTile; ++r) end = w.high[r] > end ? w.high[r] : end;
    tiles = ceil_div(end, kGradTile);
  }
  __device__ bool tile_seen(int64_t key) const {
    return __syncthreads_or(threadIdx.x < kGradTile && this->may_see(threadIdx.x, key));
  }
  __device__ void scores(int64_t key, F (&s)[kGradOwn][kGradOwn], F (&bend)[kGradOwn][kGradOwn]) const {
    __syncthreads();
    this->template load_tile<true>(w.step[0], p.s.k, key, g.keys, g.d);
    __syncthreads();
    this->products(w.own[0], w.step[0], g.d, s);
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r)
#pragma unroll
      for (int c = 0; c < kGradOwn; ++c)
        s[r][c] = this->score(s[r][c], kGradOwn * ty + r, key + tx + c * kGradLanes, bend[r][c]);
  }

  // attention.21 and attention.22: the largest score of each row.
  __device__ void find_top() const {
    F most[kGradOwn], s[kGradOwn][kGradOwn], bend[kGradOwn][kGradOwn];
    for (F& m : most) m = set1(-kInf);
    for (int64_t t = 0; t < tiles; ++t) {
      if (!tile_seen(t * kGradTile)) continue;
      scores(t * kGradTile, s, bend);
#pragma unroll
      for (int i = 0; i < kGradOwn * kGradOwn; ++i)
        most[i / kGradOwn] = set1(max_nan(most[i / kGradOwn].v, s[i / kGradOwn][i % kGradOwn].v));
    }
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      float m = most[r].v;
      for (int step = kGradLanes / 2; step; step /= 2)
        m = max_nan(m, __shfl_xor_sync(kFullWarp, m, step, kGradLanes));
      const int64_t row = first_row + kGradOwn * ty + r;
      if (p.s.sinks && row < g.rows) m = max_nan(m, p.s.sinks[head % g.kv_heads * g.group + row / g.seq]);
      if (tx == 0) w.top[kGradOwn * ty + r] = m == -kInf ? 0.0f : canonicalize(set1(m)).v;
    }
    __syncthreads();
  }

  // attention.22: the sum of each row's weights. Key j of a segment is in lane j mod 256, which is
  // (j / 64 mod 4, j / 16 mod 4) of thread j mod 16.
  __device__ void find_total() const {
    constexpr int64_t kTilesOfSegment = num::kRowSegment / kGradTile;
    F total[kGradOwn];
    for (F& x : total) x = zero();
    for (int64_t segment = 0; segment < tiles; segment += kTilesOfSegment) {
      F lane[4][kGradOwn][kGradOwn];
#pragma unroll
      for (int i = 0; i < 4 * kGradOwn * kGradOwn; ++i) lane[i / 16][i / 4 % 4][i % 4] = zero();
      for (int64_t t = segment; t < num::min_i64(tiles, segment + kTilesOfSegment); t += 4)
#pragma unroll
        for (int of = 0; of < 4; ++of) {
          const int64_t key = (t + of) * kGradTile;
          if (t + of >= tiles || !tile_seen(key)) continue;
          F s[kGradOwn][kGradOwn], bend[kGradOwn][kGradOwn];
          scores(key, s, bend);
#pragma unroll
          for (int r = 0; r < kGradOwn; ++r)
#pragma unroll
            for (int c = 0; c < kGradOwn; ++c)
              if (this->sees(kGradOwn * ty + r, key + tx + c * kGradLanes))
                lane[of][r][c] = add(lane[of][r][c], grad_weight(s[r][c], set1(w.top[kGradOwn * ty + r])));
        }
#pragma unroll
      for (int r = 0; r < kGradOwn; ++r) {  // reduction.4
        F sum[kGradOwn];
#pragma unroll
        for (int c = 0; c < kGradOwn; ++c)
          sum[c] = add(add(lane[0][r][c], lane[2][r][c]), add(lane[1][r][c], lane[3][r][c]));
        float joined = add(add(sum[0], sum[2]), add(sum[1], sum[3])).v;
        for (int step = kGradLanes / 2; step; step /= 2)
          joined = joined + __shfl_down_sync(kFullWarp, joined, step, kGradLanes);
        total[r] = add(total[r], set1(joined));
      }
    }
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      const int64_t row = first_row + kGradOwn * ty + r;
      F sum = canonicalize(total[r]);
      if (p.s.sinks && row < g.rows) {
        const float sink = p.s.sinks[head % g.kv_heads * g.group + row / g.seq];
        sum = canonicalize(add(sum, grad_weight(set1(sink), set1(w.top[kGradOwn * ty + r]))));
      }
      if (tx == 0) w.total[kGradOwn * ty + r] = sum.v == 0 ? 1.0f : sum.v;
    }
    __syncthreads();
  }

  // attention.23: the sum of the products of each row of the gradient and of y, a warp for a row.
  __device__ void find_mean() const {
    constexpr int kParts = num::kRowLanes / kWarp;
    const int lane = threadIdx.x % kWarp;
    for (int r = threadIdx.x / kWarp; r < kGradTile; r += kGradThreads / kWarp) {
      const float* const y = first_row + r < g.rows ? p.y + this->row_at(first_row + r) * g.dv : nullptr;
      F part[kParts];
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const int c = i * kWarp + lane;
        const bool there = y && c < g.dv;
        part[i] =
            there ? add(zero(), canonicalize(mul(set1(w.own[1][r * Base::kPitch + c]), set1(y[c])))) : zero();
      }
#pragma unroll
      for (int step = kParts / 2; step; step /= 2)
#pragma unroll
        for (int i = 0; i < step; ++i) part[i] = add(part[i], part[i + step]);
      float sum = part[0].v;
      for (int step = kWarp / 2; step; step /= 2) sum = sum + __shfl_down_sync(kFullWarp, sum, step);
      if (lane == 0) w.mean[r] = canonicalize(set1(sum)).v;
    }
    __syncthreads();
    if (const int r = threadIdx.x; r < kGradTile && first_row + r < g.rows) {
      const int64_t row = head * g.rows + first_row + r;
      p.top[row] = w.top[r], p.total[row] = w.total[r], p.mean[row] = w.mean[r];
    }
  }

  // attention.24: dq.
  __device__ void find_gradient() const {
    F sums[Base::kSums];
    float kept[num::kSumsKept][Base::kSums];
    Base::clear(sums);
    constexpr int64_t kTilesOfBlock = num::kChain / kGradTile;
    const int64_t blocks = num::contraction_blocks(g.keys);
    for (int64_t block = 0; block < blocks; ++block) {
      Base::clear(sums);
      for (int64_t t = block * kTilesOfBlock; t < (block + 1) * kTilesOfBlock && t * kGradTile < g.keys;
           ++t) {
        const int64_t key = t * kGradTile;
        if (!tile_seen(key) &&
            !__syncthreads_or(this->template some_not_finite<true>(p.s.k, key, g.keys, g.d)))
          continue;
        add_tile(key, sums);
      }
      Base::join(num::block_position(block, g.keys), sums, kept);
    }
    this->store_sums(sums, g.d, [&](int r) {
      return first_row + r < g.rows ? p.dq + this->row_at(first_row + r) * g.d : nullptr;
    });
  }
  __device__ void add_tile(int64_t key, F (&sums)[Base::kSums]) const {
    F s[kGradOwn][kGradOwn], dp[kGradOwn][kGradOwn], bend[kGradOwn][kGradOwn] = {};
    scores(key, s, bend);
    float* const values = w.step[Base::Shared::kFour];
    if (!Base::Shared::kFour) __syncthreads();
    this->template load_tile<true>(values, p.s.v, key, g.keys, g.dv);
    __syncthreads();
    this->products(w.own[1], values, g.dv, dp);
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      const int row = kGradOwn * ty + r;
#pragma unroll
      for (int c = 0; c < kGradOwn; ++c) {
        const F weight = canonicalize(div(grad_weight(s[r][c], set1(w.top[row])), set1(w.total[row])));
        s[r][c] = this->of_score(weight, dp[r][c], set1(w.mean[row]), bend[r][c],
                                 this->sees(row, key + tx + c * kGradLanes));
      }
    }
    this->put_tile(s);
    if (!Base::Shared::kFour) {
      __syncthreads();
      this->template load_tile<true>(w.step[0], p.s.k, key, g.keys, g.d);
    }
    __syncthreads();
    this->accumulate(w.step[0], g.d, sums);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
