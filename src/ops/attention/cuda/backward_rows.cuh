// What rows keep, and dq (attention.21 to attention.24).
#pragma once
#include "ops/attention/cuda/backward_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A tile of rows: top, total and mean, then dq. kHeld: at most 256 keys, without softcap, whose
// weights stay in registers.
template <int kSlices, bool kHeld>
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
  using Tile = F[kGradOwn][kGradOwn];
  __device__ int row_of(int r) const { return kGradOwn * ty + r; }
  // The scores of a tile of keys, -inf where they are hidden. Leaves the keys in w.step[0].
  __device__ void scores(int64_t key, const TileSight& sight, Tile& s, Tile& bend) const {
    __syncthreads();
    this->template load_tile<true>(w.step[0], p.s.k, key, g.keys, g.d);
    __syncthreads();
    this->products(w.own[0], w.step[0], g.d, s);
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
#pragma unroll
      for (int c = 0; c < kGradOwn; ++c)
        s[r][c] = this->score(s[r][c], row_of(r), key + tx + c * kGradLanes, bend[r][c]);
    }
    if (!sight.all) hide(key, set1(-kInf), s);
  }
  __device__ void hide(int64_t key, F value, Tile& s) const {
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      const KeyRange see = this->range(row_of(r), key);
#pragma unroll
      for (int c = 0; c < kGradOwn; ++c) {
        const int at = tx + c * kGradLanes;
        if (!see.has(at) || !this->unmasked(row_of(r), key + at)) s[r][c] = value;
      }
    }
  }

  // attention.21 and attention.22: the largest score of each row.
  __device__ void find_top(Tile* held) const {
    F most[kGradOwn];
    for (F& m : most) m = set1(-kInf);
    each_tile(0, tiles, [&](int64_t t, int of) {
      Tile bend, now;
      Tile& s = kHeld ? held[of] : now;
      const TileSight sight = this->tile_sight(t * kGradTile);
      if (kHeld)
#pragma unroll
        for (int i = 0; i < kGradOwn * kGradOwn; ++i) s[i / kGradOwn][i % kGradOwn] = set1(-kInf);
      if (t >= tiles || !sight.some) return;
      scores(t * kGradTile, sight, s, bend);
#pragma unroll
      for (int i = 0; i < kGradOwn * kGradOwn; ++i)
        most[i / kGradOwn] = set1(max_nan(most[i / kGradOwn].v, s[i / kGradOwn][i % kGradOwn].v));
    });
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      float m = most[r].v;
      for (int step = kGradLanes / 2; step; step /= 2)
        m = max_nan(m, __shfl_xor_sync(kFullWarp, m, step, kGradLanes));
      const int64_t row = first_row + row_of(r);
      if (p.s.sinks && row < g.rows) m = max_nan(m, p.s.sinks[head % g.kv_heads * g.group + row / g.seq]);
      if (tx == 0) w.top[row_of(r)] = m == -kInf ? 0.0f : flushed(set1(m)).v;
    }
    __syncthreads();
  }
  // f(tile, number of the tile among four) for tiles [begin, end), in fours.
  template <class Fn>
  __device__ void each_tile(int64_t begin, int64_t end, Fn f) const {
    for (int64_t t = begin; kHeld ? t == 0 : t < end; t += 4) {
#pragma unroll
      for (int of = 0; of < 4; ++of)
        if (kHeld || t + of < end) f(t + of, of);
    }
  }
  __device__ F weight(F s, int r) const {
    return exp_stored(sub(s, set1(w.top[row_of(r)])));
  }

  // attention.22: the sum of each row's weights. Key j of a segment is in lane j mod 256, which is
  // (j / 64 mod 4, j / 16 mod 4) of thread j mod 16.
  __device__ void find_total(Tile* held) const {
    constexpr int64_t kTilesOfSegment = num::kRowSegment / kGradTile;
    F total[kGradOwn];
    for (F& x : total) x = zero();
    for (int64_t segment = 0; kHeld ? segment == 0 : segment < tiles; segment += kTilesOfSegment) {
      F lane[4][kGradOwn][kGradOwn];
#pragma unroll
      for (int i = 0; i < 4 * kGradOwn * kGradOwn; ++i) lane[i / 16][i / 4 % 4][i % 4] = zero();
      each_tile(segment, num::min_i64(tiles, segment + kTilesOfSegment), [&](int64_t t, int of) {
        Tile now, bend;
        Tile& s = kHeld ? held[of] : now;
        if (!kHeld) {
          const TileSight sight = this->tile_sight(t * kGradTile);
          if (!sight.some) return;
          scores(t * kGradTile, sight, s, bend);
        }
#pragma unroll
        for (int r = 0; r < kGradOwn; ++r)
#pragma unroll
          for (int c = 0; c < kGradOwn; ++c) {
            s[r][c] = weight(s[r][c], r);  // reduction.2
            lane[of][r][c] = add(lane[of][r][c], s[r][c]);
          }
      });
#pragma unroll
      for (int r = 0; r < kGradOwn; ++r) {  // reduction.4
        F sum[kGradOwn];
#pragma unroll
        for (int c = 0; c < kGradOwn; ++c)
          sum[c] = add(add(lane[0][r][c], lane[2][r][c]), add(lane[1][r][c], lane[3][r][c]));
        float joined = add(add(sum[0], sum[2]), add(sum[1], sum[3])).v;
        for (int step = kGradLanes / 2; step; step /= 2)  // reduction.4
          joined = joined + __shfl_down_sync(kFullWarp, joined, step, kGradLanes);
        total[r] = add(total[r], set1(joined));
      }
    }
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      const int64_t row = first_row + row_of(r);
      F sum = flushed(total[r]);
      if (p.s.sinks && row < g.rows) {
        const float sink = p.s.sinks[head % g.kv_heads * g.group + row / g.seq];
        sum = flushed(add(sum, weight(set1(sink), r)));
      }
      if (tx == 0) w.total[row_of(r)] = sum.v == 0 ? 1.0f : sum.v;
    }
    __syncthreads();
  }

  // attention.23: the sum of the products of each row of the gradient and of y, a warp for a row.
  __device__ void find_mean() const {
    constexpr int kParts = num::kRowLanes / kWarp;
    const int lane = threadIdx.x % kWarp;
    for (int r = threadIdx.x / kWarp; r < kGradTile; r += kGradThreads / kWarp) {
      const float* const y =
          first_row + r < g.rows ? p.y + this->index_of_row(first_row + r) * g.dv : nullptr;
      F part[kParts];
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const int c = i * kWarp + lane;
        const bool there = y && c < g.dv;
        part[i] =
            there ? add(zero(), flushed(mul(set1(w.own[1][r * Base::kPitch + c]), set1(y[c])))) : zero();
      }
#pragma unroll
      for (int step = kParts / 2; step; step /= 2)  // reduction.4
#pragma unroll
        for (int i = 0; i < step; ++i) part[i] = add(part[i], part[i + step]);
      float sum = part[0].v;  // reduction.4
      for (int step = kWarp / 2; step; step /= 2) sum = sum + __shfl_down_sync(kFullWarp, sum, step);
      if (lane == 0) w.mean[r] = flushed(set1(sum)).v;
    }
    __syncthreads();
    if (const int r = threadIdx.x; r < kGradTile && first_row + r < g.rows) {
      const int64_t row = head * g.rows + first_row + r;
      p.top[row] = w.top[r], p.total[row] = w.total[r], p.mean[row] = w.mean[r];
    }
  }

  // attention.24: dq.
  __device__ void find_gradient(Tile* held) const {
    F sums[Base::kSums];
    F kept[num::kSumsKept][Base::kSums];
    num::INVAR_ISA_NS::Divisor total[kGradOwn];
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) total[r] = num::INVAR_ISA_NS::divisor(set1(w.total[row_of(r)]));
    Base::clear(sums);
    constexpr int64_t kTilesOfBlock = num::kChain / kGradTile;
    const int64_t blocks = num::contraction_blocks(g.keys), all = ceil_div(g.keys, kGradTile);
    for (int64_t block = 0; block < blocks; ++block) {
      Base::clear(sums);
      const int64_t first = block * kTilesOfBlock;
      each_tile(first, num::min_i64(all, first + kTilesOfBlock), [&](int64_t t, int of) {
        const int64_t key = t * kGradTile;
        const TileSight sight = this->tile_sight(key);
        if (t >= all) return;
        if (!sight.some && !__syncthreads_or(this->template some_not_finite<true>(p.s.k, key, g.keys, g.d)))
          return;
        add_tile(key, sight, total, held ? held + of : nullptr, sums);
      });
      Base::join(num::block_position(block, g.keys), sums, kept);
    }
    this->store_sums(sums, g.d, [&](int r) {
      return first_row + r < g.rows ? p.dq + this->index_of_row(first_row + r) * g.d : nullptr;
    });
  }
  __device__ void add_tile(int64_t key, const TileSight& sight,
                           const num::INVAR_ISA_NS::Divisor (&total)[kGradOwn], Tile* held,
                           F (&sums)[Base::kSums]) const {
    constexpr bool kFour = Base::Shared::kFour;
    Tile now, dp, bend = {};
    Tile& s = kHeld ? *held : now;  // scores, or held weights
    if (kHeld) {
      __syncthreads();
      this->template load_tile<true>(w.step[0], p.s.k, key, g.keys, g.d);
    } else {
      scores(key, sight, s, bend);
    }
    float* const values = w.step[kFour];
    if (!kFour) __syncthreads();
    this->template load_tile<true>(values, p.s.v, key, g.keys, g.dv);
    __syncthreads();
    this->products(w.own[1], values, g.dv, dp);
#pragma unroll
    for (int r = 0; r < kGradOwn; ++r) {
      const F mean = set1(w.mean[row_of(r)]);
#pragma unroll
      for (int c = 0; c < kGradOwn; ++c) {
        const F by = kHeld ? s[r][c] : weight(s[r][c], r);
        dp[r][c] =
            this->of_score(flushed(num::INVAR_ISA_NS::quotient(by, total[r])), dp[r][c], mean, bend[r][c]);
      }
    }
    if (!sight.all) hide(key, zero(), dp);
    this->put_tile(dp);
    if (!kFour) {
      __syncthreads();
      this->template load_tile<true>(w.step[0], p.s.k, key, g.keys, g.d);
    }
    __syncthreads();
    this->accumulate(w.step[0], g.d, sums);
  }
  __device__ void run() const {
    Tile held[kHeld ? 4 : 1];
    find_top(held);
    find_total(held);
    find_mean();
    find_gradient(held);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
