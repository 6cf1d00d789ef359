// Split-KV decoding: a warp takes one key block for a group of query rows. Each of its lanes has 4
// neighbouring keys, and then 4 value columns, so the cache is read once, 16 bytes a lane. Then a
// thread block combines the partial results of a row. The warp that takes a block also appends its
// new keys and values (attention.2); if several warps take it, they write the same.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kSplitWarps = 4, kSplitThreads = kSplitWarps * kWarp;
constexpr int kCombineThreads = 128, kCombineWarps = kCombineThreads / kWarp;
constexpr int kLaneKeys = kBlock / kWarp;

// A warp's shared memory: queries, and weights (negative: hidden) at their keys.
template <int R>
struct SplitSmem {
  alignas(16) float q[num::kChain][R], p[kBlock][R];
};
template <int R>
__device__ inline void load_rows(const float* from, F (&x)[R]) {
  if constexpr (R % 4 == 0) {
#pragma unroll
    for (int r = 0; r < R; r += 4) {
      const float4 v = *reinterpret_cast<const float4*>(from + r);
      x[r] = set1(v.x), x[r + 1] = set1(v.y), x[r + 2] = set1(v.z), x[r + 3] = set1(v.w);
    }
  } else {
#pragma unroll
    for (int r = 0; r < R; ++r) x[r] = load(from + r);
  }
}
// c[r][i] += a[r] times 4 neighbours (contraction.2, attention.8). kMasked: except where a[r] says
// that the key is hidden.
template <int R, bool kMasked>
__device__ inline void fma_lane(const float4& b, const F (&a)[R], F (&c)[R][kLaneKeys]) {
  const float column[kLaneKeys] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < kLaneKeys; ++i) {
      const F sum = fma(a[r], set1(column[i]), c[r][i]);
      c[r][i] = kMasked ? select(lt(a[r], zero()), c[r][i], sum) : sum;
    }
}

constexpr int kLoadBatch = 16;  // rows whose loads are in flight at once

__device__ inline void append_block(const AttentionParams& s, const HeadCache& cache, int64_t head,
                                    int64_t block) {
  const Geometry& g = s.g;
  const int64_t past = cache.past, base = block * kBlock, end = num::min_i64(base + kBlock - past, g.keys);
  for (int64_t i = base > past ? base - past : 0; i < end; ++i) {
    const int slot = static_cast<int>(past + i - base);
    const int64_t from = attention::head_row(g, head / g.kv_heads, i, head % g.kv_heads, g.keys, g.kv_heads);
    float* key = key_block(s, cache, block) + key_slot(slot);
    float* value = value_block(s, cache, block) + slot * g.dv_padded;
    for (int64_t j = threadIdx.x % kWarp; j < g.d; j += kWarp) key[j * kBlock] = s.k[from * g.d + j];
    for (int64_t j = threadIdx.x % kWarp; j < g.dv; j += kWarp) value[j] = s.v[from * g.dv + j];
  }
}

// One unit of split_kv_kernel: a key block for `count` of R rows of a key head.
template <int R>
struct SplitUnit {
  const AttentionParams& s;
  const HeadCache& cache;
  SplitSmem<R>& w;
  int64_t head, first, block;
  int count;

  __device__ __forceinline__ QueryRow row_at(int r) const {
    return query_row(s.g, head, first + (r < count ? r : count - 1));
  }

  // attention.3: c = the chains of this lane's keys with the queries.
  __device__ __forceinline__ void score_keys(F (&c)[R][kLaneKeys]) const {
    const int lane = threadIdx.x % kWarp, d = static_cast<int>(s.g.d);
    const float* keys = key_block(s, cache, block) + kLaneKeys * lane;
    __syncwarp();
    const float* query = s.q + row_index(s.g, row_at(lane % R)) * d;
    for (int i = lane / R; i < d; i += kWarp / R) w.q[i][lane % R] = query[i];
    __syncwarp();
    F a[R];
    int i = 0;
    for (; i + kLoadBatch <= d; i += kLoadBatch) {
#pragma unroll
      for (int j = i; j < i + kLoadBatch; ++j) {
        load_rows<R>(w.q[j], a);
        fma_lane<R, false>(*reinterpret_cast<const float4*>(keys + j * kBlock), a, c);
      }
    }
    for (; i < d; ++i) {
      load_rows<R>(w.q[i], a);
      fma_lane<R, false>(*reinterpret_cast<const float4*>(keys + i * kBlock), a, c);
    }
  }
  // Chains -> scores; returns which are hidden, a bit each. plain: none is, and nothing
  // else is done to scores.
  __device__ __forceinline__ unsigned mask_scores(bool plain, F (&c)[R][kLaneKeys]) const {
    const int lane = threadIdx.x % kWarp;
    unsigned hidden = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      // attention.3: the one chain joins +0 (contraction.3).
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) c[r][i] = mul(add(zero(), c[r][i]), set1(s.g.scale));
      if (!plain) {
        const QueryRow row = row_at(r);
        const ScoreMask of(s, attention::visible_keys(s.g, s.lengths, cache.past, row.batch, row.i), row,
                           cache.past, block);
#pragma unroll
        for (int i = 0; i < kLaneKeys; ++i)
          if (!of.score(s, block, key_of_slot(kLaneKeys * lane + i), c[r][i]))
            c[r][i] = set1(-kInf), hidden |= 1u << (kLaneKeys * r + i);
      }
    }
    return hidden;
  }
  // attention.5 to attention.7: stores the weights to shared memory, and m_b and l_b. `to`: the
  // first row's block among the partials. Returns whether no row sees a key.
  __device__ __forceinline__ bool weigh_keys(const F (&score)[R][kLaneKeys], unsigned hidden,
                                             int64_t to) const {
    const int lane = threadIdx.x % kWarp;
    bool nothing = true;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const F(&c)[kLaneKeys] = score[r];
      float m = max_nan(max_nan(c[0].v, c[1].v), max_nan(c[2].v, c[3].v));
#pragma unroll
      for (int step = kWarp / 2; step; step /= 2) m = max_nan(m, __shfl_xor_sync(kFullWarp, m, step));
      // attention.6; a hidden key's is +0, or nothing of the block matters
      float p[kLaneKeys];
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) {
        p[i] = exp_stored(sub(c[i], set1(m))).v;
        w.p[key_of_slot(kLaneKeys * lane + i)][r] = hidden >> (kLaneKeys * r + i) & 1 ? -1.0f : p[i];
      }
      const float l = num::INVAR_ISA_NS::block_sum_runs(p);
      if (lane == 0 && r < count)
        s.max_sums[2 * (to + r * s.g.seen)] = m, s.max_sums[2 * (to + r * s.g.seen) + 1] = l;
      nothing = nothing && m == -kInf;
    }
    return nothing;
  }
  // attention.8: weights times values of the first `end` keys -> partials. all: no key is hidden.
  __device__ __forceinline__ void multiply_values(bool all, int end, int64_t to) const {
    const Geometry& g = s.g;
    F a[R];
    for (int64_t column = kLaneKeys * (threadIdx.x % kWarp); column < g.dv; column += kBlock) {
      const float* values = value_block(s, cache, block) + column;
      F o[R][kLaneKeys] = {};
      for (int from = 0; from < end; from += kLoadBatch) {
        if (all) {
#pragma unroll
          for (int j = from; j < from + kLoadBatch; ++j) {
            load_rows<R>(w.p[j], a);
            fma_lane<R, false>(*reinterpret_cast<const float4*>(values + j * g.dv_padded), a, o);
          }
        } else {
#pragma unroll
          for (int j = from; j < from + kLoadBatch; ++j) {
            load_rows<R>(w.p[j], a);
            fma_lane<R, true>(*reinterpret_cast<const float4*>(values + j * g.dv_padded), a, o);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (r < count)
          *reinterpret_cast<float4*>(s.partials + (to + r * g.seen) * g.dv_padded + column) =
              make_float4(o[r][0].v, o[r][1].v, o[r][2].v, o[r][3].v);
    }
  }
};

// Units: a key block for a group of R rows of a key head; each group has as many units as the
// longest sequence has blocks. m_b and l_b -> max_sums, unscaled results -> partials.
template <int R>
__global__ void __launch_bounds__(kSplitThreads, 4)
    split_kv_kernel(const __grid_constant__ AttentionParams s) {
  __shared__ SplitSmem<R> shared[kSplitWarps];
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp;
  trigger_and_wait();
  const int64_t blocks = ceil_div(*s.past + g.keys, kBlock), groups = ceil_div(g.rows, R);
  for (int64_t unit = int64_t{blockIdx.x} * kSplitWarps + threadIdx.x / kWarp;
       unit < g.batch * g.kv_heads * groups * blocks; unit += int64_t{gridDim.x} * kSplitWarps) {
    const int64_t block = unit % blocks, first = unit / blocks % groups * R, head = unit / blocks / groups;
    const HeadCache cache = head_cache(s, head);
    const int64_t past = cache.past;
    if (block * kBlock >= past + g.keys) continue;
    const int count = static_cast<int>(num::min_i64(R, g.rows - first));
    const int64_t base = block * kBlock, to = (head * g.rows + first) * g.seen + block;
    const SplitUnit<R> own{s, cache, shared[threadIdx.x / kWarp], head, first, block, count};
    // What a row sees begins and ends no earlier than what the row before it sees.
    const QueryRow low_row = own.row_at(0), high_row = own.row_at(count - 1);
    const VisibleKeys low = attention::visible_keys(g, s.lengths, past, low_row.batch, low_row.i),
                      high = attention::visible_keys(g, s.lengths, past, high_row.batch, high_row.i);
    append_block(s, cache, head, block);
    if (base >= high.high || (base + kBlock <= low.low && base >= g.first)) {
      if (lane < count) s.max_sums[2 * (to + lane * g.seen)] = -kInf;
      continue;
    }
    const bool plain =
        g.plain_scores && (base >= high.low || base + kBlock <= g.first) && base + kBlock <= low.high;
    F c[R][kLaneKeys] = {};
    own.score_keys(c);
    const unsigned hidden = own.mask_scores(plain, c);
    const bool nothing = own.weigh_keys(c, hidden, to);
    const bool all = !__any_sync(kFullWarp, hidden != 0);
    __syncwarp();
    if (nothing) continue;
    own.multiply_values(all, static_cast<int>(num::min_i64(kBlock, high.high - base)), to);
  }
}

// Thread blocks: columns of one row, whose partials they fold in order (attention.9, attention.17,
// attention.10). kAhead partials are loaded before they are folded.
template <int kAhead>
__global__ void __launch_bounds__(kCombineThreads)
    combine_splits_kernel(const __grid_constant__ AttentionParams s) {
  __shared__ float2 factor[kCombineThreads];  // of a block, and l_b
  __shared__ float last[kCombineWarps];
  // Whether none of a warp's blocks has a larger maximum than those before it, as is usual.
  __shared__ bool smaller[kCombineWarps];
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  trigger_and_wait();
  const int64_t head = blockIdx.x / g.rows, row = blockIdx.x % g.rows,
                blocks = ceil_div(s.sequences[head / g.kv_heads].past + g.keys, kBlock);
  const QueryRow r = query_row(g, head, row);
  const float* max_sums = s.max_sums + 2 * blockIdx.x * g.seen;
  for (int64_t first = int64_t{blockIdx.y} * kCombineThreads; first < g.dv;
       first += int64_t{gridDim.y} * kCombineThreads) {
    const int64_t c = first + threadIdx.x;
    const float* partials = s.partials + blockIdx.x * g.seen * g.dv_padded + (c < g.dv ? c : 0);
    F ahead[kAhead];
    auto load_ahead = [&](int64_t from) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        ahead[i] = from + i < blocks ? load(partials + (from + i) * g.dv_padded) : zero();
    };
    load_ahead(0);
    OnlineSoftmax all;
    F o = zero();
    for (int64_t b = 0; b < blocks; b += kCombineThreads) {
      // The maximum before each block: a prefix maximum of m_b.
      const bool is_block = b + threadIdx.x < blocks;
      const float mb = is_block ? max_sums[2 * (b + threadIdx.x)] : -kInf;
      const float lb = is_block ? max_sums[2 * (b + threadIdx.x) + 1] : 0.0f;
      float upto = mb;
#pragma unroll
      for (int step = 1; step < kWarp; step *= 2) {
        const float before = __shfl_up_sync(kFullWarp, upto, step);
        if (lane >= step) upto = max_nan(upto, before);
      }
      __syncthreads();
      if (lane == kWarp - 1) last[warp] = upto;
      __syncthreads();
      float m = all.m.v;
      for (int k = 0; k < warp; ++k) m = max_nan(m, last[k]);
      const float before = __shfl_up_sync(kFullWarp, upto, 1);
      if (lane > 0) m = max_nan(m, before);
      const float by = rescale_factor(set1(mb), set1(m));
      factor[threadIdx.x] = make_float2(by, lb);
      const bool none = __all_sync(kFullWarp, by < 0);
      if (lane == 0) smaller[warp] = none;
      for (int k = 0; k < kCombineWarps; ++k) all.m = set1(max_nan(all.m.v, last[k]));
      __syncthreads();
      for (int k = 0; k < kCombineThreads && b + k < blocks; k += kAhead) {
        F part[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) part[i] = ahead[i];
        load_ahead(b + k + kAhead);
        bool plain = true;
#pragma unroll
        for (int w = 0; w < kAhead; w += kWarp) plain = plain && smaller[(k + w) / kWarp];
        if (plain) {
#pragma unroll
          for (int i = 0; i < kAhead; ++i) {
            const float2 by = factor[k + i];
            all.l = fma(set1(by.y), set1(-by.x), all.l), o = fma(part[i], set1(-by.x), o);  // attention.9
          }
        } else {
#pragma unroll
          for (int i = 0; i < kAhead; ++i) {
            const float2 by = factor[k + i];
            all.l = fold(by.x, all.l, set1(by.y)), o = fold(by.x, o, part[i]);
          }
        }
      }
    }
    if (s.sinks) o = fold(all.join(set1(s.sinks[r.head]), set1(1.0f)), o, zero());
    if (c < g.dv) store(s.y + row_index(g, r) * g.dv + c, normalized(o, all.m, all.l));
  }
}

// No more partials ahead than there are: what is absent would be folded, too.
inline void launch_combine_splits(const AttentionParams& s, Stream stream) {
  const auto kernel = s.g.seen <= 8    ? combine_splits_kernel<8>
                      : s.g.seen <= 16 ? combine_splits_kernel<16>
                      : s.g.seen <= 32 ? combine_splits_kernel<32>
                                       : combine_splits_kernel<64>;
  launch_dependent(kernel,
                   dim3(static_cast<unsigned>(s.g.batch * s.g.kv_heads * s.g.rows),
                        static_cast<unsigned>(num::min_i64(ceil_div(s.g.dv, kCombineThreads), 64))),
                   dim3(kCombineThreads), 0, stream, s);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
