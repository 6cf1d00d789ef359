// What the kernels of attention's gradients share: a thread block's tiles, scores, and sums.
#pragma once
#include "num/quotient/quotient.h"
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using attention::BackwardOperands;

constexpr int kGradTile = 64, kGradThreads = 256,
              kGradLanes = 16;             // rows and keys of a tile; threads of a row
constexpr int kGradOwn = 4;                // rows and columns of a thread
constexpr int kGradPitch = kGradTile + 4;  // of the tile of weights

struct BackwardParams {
  AttentionParams s;  // q, k and v, what is added to scores and hides keys
  const float *grad, *y;
  float *dq, *dk, *dv, *top, *total, *mean;
  bool plain;  // scores are scaled products
};

// The shared memory of a thread block; kSlices: of 64 columns of a row of an operand.
template <int kSlices>
struct GradShared {
  static constexpr int kPitch = kSlices * kGradTile + 4;
  static constexpr bool kFour = kSlices < 4;  // whether both operands of a step fit
  float own[2][kGradTile * kPitch], step[kFour ? 2 : 1][kGradTile * kPitch];
  float tile[kGradTile * kGradPitch];
  int64_t low[kGradTile], high[kGradTile], position[kGradTile], mask[kGradTile];
  float slope[kGradTile], top[kGradTile], total[kGradTile], mean[kGradTile];
};

// The store rule up to the payload of a NaN: every sum that is written gets the rest of it.
__device__ inline F flushed(F x) {
  F y;
  asm("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(y.v) : "f"(x.v));
  return y;
}
// What a row sees of the 64 keys of a tile: [low, high), and [0, first) below high.
struct KeyRange {
  int low, high, first;
  __device__ bool any() const { return high > 0 && (low < kGradTile || first > 0); }
  __device__ bool all() const { return high == kGradTile && low == 0; }
  __device__ bool has(int key) const { return key < high && (key >= low || key < first); }
};
struct TileSight {
  bool some, all;  // whether any row may see any key; whether each sees all
};
__device__ inline int within_tile(int64_t position) {
  return position <= 0 ? 0 : position < kGradTile ? static_cast<int>(position) : kGradTile;
}
__device__ inline bool not_finite(float x) {
  return !(fabsf(x) < kInf);
}

// What a thread block of either kernel does. Its threads own 4 x 4 elements of a tile: rows 4 ty
// ... and columns tx, tx + 16 ... of products, columns 4 tx ... of each slice of sums.
template <int kSlices>
struct GradBlock {
  using Shared = GradShared<kSlices>;
  static constexpr int kPitch = Shared::kPitch;
  static constexpr int kSums = kSlices * kGradOwn * kGradOwn;
  const BackwardParams& p;
  const Geometry& g;
  Shared& w;
  const int tx, ty;
  int64_t head;

  __device__ GradBlock(const BackwardParams& params, Shared& shared, int64_t of_head)
      : p(params),
        g(params.s.g),
        w(shared),
        tx(threadIdx.x % kGradLanes),
        ty(threadIdx.x / kGradLanes),
        head(of_head) {}

  __device__ int64_t index_of_row(int64_t row) const { return attention::gradient_row(g, head, row); }
  __device__ int64_t index_of_key(int64_t key) const { return attention::gradient_key(g, head, key); }
  template <bool kKeys>
  __device__ const float* element(const float* x, int64_t i, int64_t size) const {
    return x + (kKeys ? index_of_key(i) : index_of_row(i)) * size;
  }

  // Rows, or keys, [from, from + 64) of an operand, those beyond `n` and columns up to a multiple
  // of 4 as zeros.
  template <bool kKeys>
  __device__ void load_tile(float* to, const float* x, int64_t from, int64_t n, int64_t size) const {
    const int columns = static_cast<int>(attention::up_to(size, 4));
    for (int r = threadIdx.x / kWarp; r < kGradTile; r += kGradThreads / kWarp) {
      const float* const row = from + r < n ? element<kKeys>(x, from + r, size) : nullptr;
      for (int c = threadIdx.x % kWarp; c < columns; c += kWarp)
        to[r * kPitch + c] = row && c < size ? row[c] : 0.0f;
    }
  }
  template <bool kKeys>
  __device__ bool some_not_finite(const float* x, int64_t from, int64_t n, int64_t size) const {
    bool bad = false;
    for (int r = threadIdx.x / kWarp; r < kGradTile && from + r < n; r += kGradThreads / kWarp) {
      const float* const row = element<kKeys>(x, from + r, size);
      for (int c = threadIdx.x % kWarp; c < size; c += kWarp) bad = bad || not_finite(row[c]);
    }
    return bad;
  }

  // What the rows of a tile see; rows beyond the last see nothing.
  __device__ void load_sight(int64_t first_row) const {
    const int r = threadIdx.x;
    if (r >= kGradTile) return;
    const int64_t row = first_row + r, batch = head / g.kv_heads;
    w.low[r] = w.high[r] = w.position[r] = w.mask[r] = 0, w.slope[r] = 0;
    if (row >= g.rows) return;
    const int64_t i = row % g.seq, q_head = head % g.kv_heads * g.group + row / g.seq;
    const VisibleKeys see = attention::visible_keys(g, p.s.lengths, 0, batch, i);
    w.low[r] = see.low, w.high[r] = see.high;
    w.position[r] = attention::query_position(g, p.s.lengths, 0, batch, i);
    if (g.mask) w.mask[r] = attention::mask_row(g, batch, q_head, i);
    if (p.s.slopes) w.slope[r] = p.s.slopes[q_head];
  }
  // What a row of the tile sees of the 64 keys from `key` on.
  __device__ KeyRange range(int r, int64_t key) const {
    return {within_tile(w.low[r] - key), within_tile(w.high[r] - key), within_tile(g.first - key)};
  }
  // What all rows of the tile see of them; the same in all threads.
  __device__ TileSight tile_sight(int64_t key) const {
    const int lane = threadIdx.x % kWarp;
    const KeyRange a = range(lane, key), b = range(lane + kWarp, key);
    const bool some = a.any() || b.any(), all = a.all() && b.all();
    return {__any_sync(kFullWarp, some) != 0, __all_sync(kFullWarp, all) != 0 && !g.mask};
  }
  // Whether the mask leaves a key to row r.
  __device__ bool unmasked(int r, int64_t key) const {
    if (!g.mask) return true;
    if (key >= p.s.mask_columns) return false;
    return p.s.bool_mask ? p.s.bool_mask[w.mask[r] + key] != 0 : p.s.float_mask[w.mask[r] + key] != -kInf;
  }

  // acc[r][c] = the contraction of row 4 ty + r of a with row tx + 16 c of b, stored. `size` is at
  // most one chain.
  __device__ void products(const float* a, const float* b, int64_t size, F (&acc)[kGradOwn][kGradOwn]) const {
#pragma unroll
    for (int i = 0; i < kGradOwn * kGradOwn; ++i) acc[i / kGradOwn][i % kGradOwn] = zero();
    const float *mine = a + kGradOwn * ty * kPitch, *other = b + tx * kPitch;
    for (int k = 0; k < size; k += 4) {
      float4 x[kGradOwn], z[kGradOwn];
#pragma unroll
      for (int i = 0; i < kGradOwn; ++i) {
        x[i] = *reinterpret_cast<const float4*>(mine + i * kPitch + k);
        z[i] = *reinterpret_cast<const float4*>(other + i * kGradLanes * kPitch + k);
      }
#pragma unroll
      for (int r = 0; r < kGradOwn; ++r)
#pragma unroll
        for (int c = 0; c < kGradOwn; ++c) {
          F sum = acc[r][c];  // contraction.2
          sum = fma(set1(x[r].x), set1(z[c].x), sum), sum = fma(set1(x[r].y), set1(z[c].y), sum);
          sum = fma(set1(x[r].z), set1(z[c].z), sum), acc[r][c] = fma(set1(x[r].w), set1(z[c].w), sum);
        }
    }
#pragma unroll
    for (int i = 0; i < kGradOwn * kGradOwn; ++i) {
      F& x = acc[i / kGradOwn][i % kGradOwn];
      x = flushed(add(zero(), x));
    }
  }
  // Continues chains: rows of the tile of weights with the rows of b.
  __device__ void accumulate(const float* b, int64_t size, F (&sums)[kSums]) const {
    const float *mine = w.tile + kGradOwn * ty * kGradPitch, *other = b + 4 * tx;
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      if (slice * kGradTile >= size) break;
      F* const acc = sums + slice * kGradOwn * kGradOwn;
      for (int k = 0; k < kGradTile; k += 4) {
        float x[kGradOwn][4];
#pragma unroll
        for (int r = 0; r < kGradOwn; ++r)
          *reinterpret_cast<float4*>(x[r]) = *reinterpret_cast<const float4*>(mine + r * kGradPitch + k);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float4 z = *reinterpret_cast<const float4*>(other + (k + i) * kPitch + slice * kGradTile);
#pragma unroll
          for (int r = 0; r < kGradOwn; ++r) {
            F* const c = acc + r * kGradOwn;
            const F by = set1(x[r][i]);  // contraction.2
            c[0] = fma(by, set1(z.x), c[0]), c[1] = fma(by, set1(z.y), c[1]);
            c[2] = fma(by, set1(z.z), c[2]), c[3] = fma(by, set1(z.w), c[3]);
          }
        }
      }
    }
  }
  __device__ void put_tile(const F (&x)[kGradOwn][kGradOwn]) const {
#pragma unroll
    for (int i = 0; i < kGradOwn * kGradOwn; ++i)
      w.tile[(kGradOwn * ty + i / kGradOwn) * kGradPitch + tx + i % kGradOwn * kGradLanes] =
          x[i / kGradOwn][i % kGradOwn].v;
  }
  // Stores the sums of this thread; at(r): where row r of the tile goes, or null.
  template <class At>
  __device__ void store_sums(const F (&sums)[kSums], int64_t size, At at) const {
    for (int r = 0; r < kGradOwn; ++r) {
      float* const out = at(kGradOwn * ty + r);
#pragma unroll
      for (int i = 0; out && i < kSlices * kGradOwn; ++i) {
        const int column = i / kGradOwn * kGradTile + 4 * tx + i % kGradOwn;
        if (column < size)
          out[column] =
              canonicalize(sums[i / kGradOwn * kGradOwn * kGradOwn + r * kGradOwn + i % kGradOwn]).v;
      }
    }
  }
  __device__ static void clear(F (&sums)[kSums]) {
#pragma unroll
    for (F& x : sums) x = zero();
  }
  // contraction.3 and contraction.4 block by block, as num's join_block, whose loops a GPU must
  // unroll. kept: the segment and the sums that wait in the tree.
  __device__ static void join(const num::BlockPosition& place, F (&sums)[kSums],
                              F (&kept)[num::kSumsKept][kSums]) {
    const auto add_kept = [&](int which) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[i] = add(kept[which][i], sums[i]);
    };
    const auto keep = [&](int which) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) kept[which][i] = sums[i];
    };
    if (!place.opens) add_kept(0);
#pragma unroll
    for (int i = 0; place.opens && i < kSums; ++i) sums[i] = add(zero(), sums[i]);
    if (!place.closes) return keep(0);
    int level = 0;  // a finished segment climbs the tree; the last one to its root
    for (; place.last ? level < 3 : place.segment >> level & 1; ++level)
      if (place.segment >> level & 1) add_kept(1 + level);
    if (!place.last) keep(1 + level);
  }

  // attention.21: the score of a stored product, and its bend.
  __device__ F score(F product, int r, int64_t key, F& bend) const {
    F s = flushed(mul(product, set1(g.scale)));
    if (!p.plain) s = adjusted(s, r, key, bend);
    return s;
  }
  __device__ __noinline__ F adjusted(F s, int r, int64_t key, F& bend) const {
    if (g.softcap != 0) {
      bend = flushed(tanh(flushed(div(s, set1(g.softcap)))));
      s = flushed(mul(bend, set1(g.softcap)));
    }
    if (p.s.slopes)
      s = flushed(add(s, flushed(mul(set1(w.slope[r]), set1(static_cast<float>(key - w.position[r]))))));
    if (p.s.float_mask && key < p.s.mask_columns) s = flushed(add(s, set1(p.s.float_mask[w.mask[r] + key])));
    return s;
  }
  // attention.23
  __device__ F of_score(F weight, F dp, F mean, F bend) const {
    F d = flushed(mul(weight, flushed(sub(dp, mean))));
    if (g.softcap != 0) {
      const F one = set1(1.0f);
      d = flushed(mul(d, flushed(mul(flushed(sub(one, bend)), flushed(add(one, bend))))));
    }
    return flushed(mul(d, set1(g.scale)));
  }
};
}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
