// attention_exact16 row by row, for heads of any size and numbers of any kind: a warp computes one
// query row. A lane computes the scores of four keys of a block, and then columns of the output.
#pragma once
#include "ops/attention/cuda/exact16/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kLaneKeysOfRow = kBlock / kWarp;

// A query row of a key head.
struct ExactRow {
  const AttentionParams& s;
  int64_t head, past;
  QueryRow row;
  VisibleKeys range;
  int32_t e;                       // of the query
  int32_t w[kLaneKeysOfRow], top;  // W of a block, and E

  __device__ ExactRow(const AttentionParams& s, int64_t head, int64_t r)
      : s(s), head(head), past(s.sequences[head / s.g.kv_heads].past), row(query_row(s.g, head, r)) {
    range = attention::visible_keys(s.g, s.lengths, past, row.batch, row.i);
    uint32_t largest = 0;
    for (int64_t i = threadIdx.x % kWarp; i < s.g.d; i += kWarp)
      largest = umax(largest, magnitude(query()[i]));
    e = scale_of_largest(largest_of_warp(largest));
  }
  __device__ const float* query() const { return s.q + row_index(s.g, row) * s.g.d; }

  // Maximum, sum and weights of a block; the maximum is -inf if no key is visible. kPlain: scores
  // are scaled products.
  template <bool kPlain = false>
  __device__ __forceinline__ void weigh(const ExactLayout& at, const ExactCacheBlock& own, int64_t block,
                                        float& mb, F& lb) {
    const Geometry& g = s.g;
    const Quantizer by(e);
    const float* q = query();
    const ScoreMask mask(s, range, row, past, block);
    float x[kLaneKeysOfRow];
    mb = -kInf, lb = zero();
    for (int i = 0; i < kLaneKeysOfRow; ++i) {
      const int key = i * kWarp + threadIdx.x % kWarp;
      x[i] = -kInf, w[i] = 0;
      if (block * kBlock + key >= past + g.keys) continue;
      const int8_t* keys = own.keys + key * at.dk;
      int64_t product = 0;
      for (int64_t c = 0; c < g.d; ++c)
        product += int64_t{by.integer(q[c])} * (keys[c] * 256 + keys[at.key_plane() + c]);
      F score = mul(exact_result(product, e, own.key_scales[key]), set1(g.scale));
      if (kPlain ? mask.in_range(key) : mask.score(s, block, key, score)) x[i] = score.v;
    }
    for (const float score : x) mb = max_nan(mb, score);
#pragma unroll
    for (int step = kWarp / 2; step; step /= 2) mb = max_nan(mb, __shfl_xor_sync(kFullWarp, mb, step));
    if (mb == -kInf) return;
    int32_t sum = 0, reach[kLaneKeysOfRow];
    top = kHiddenKey;
    for (int i = 0; i < kLaneKeysOfRow; ++i) {
      reach[i] = kHiddenKey;
      if (x[i] == -kInf) continue;
      const ExactWeight of = exact_weight(sub(set1(x[i]), set1(mb)).v);
      sum += of.fine(), reach[i] = of.reach(own.value_scales[i * kWarp + threadIdx.x % kWarp]);
      top = max(top, reach[i]);
    }
#pragma unroll
    for (int step = kWarp / 2; step; step /= 2) {
      sum += __shfl_xor_sync(kFullWarp, sum, step);
      top = max(top, __shfl_xor_sync(kFullWarp, top, step));
    }
    lb = exact_block_sum(sum, mb);
    for (int i = 0; i < kLaneKeysOfRow; ++i)
      w[i] = x[i] == -kInf ? 0 : exact_weight(sub(set1(x[i]), set1(mb)).v).coarse(top - reach[i]);
  }
  // O_b of this lane's columns -> put(column, O_b).
  template <class Put>
  __device__ void multiply(const ExactLayout& at, const ExactCacheBlock& own, Put put) const {
    for (int64_t first = 0; first < s.g.dv; first += kWarp) {
      const int64_t c = first + threadIdx.x % kWarp;
      const int8_t* values = own.values + (c < s.g.dv ? c : 0) * kBlock;
      int64_t sum = 0;
      for (int j = 0; j < kBlock; ++j) {
        const int32_t weight = __shfl_sync(kFullWarp, w[j / kWarp], j % kWarp);
        sum += int64_t{weight} * (values[j] * 256 + values[at.value_plane() + j]);
      }
      if (c >= s.g.dv) continue;
      put(c, top < kZeroRow / 2      ? zero()
             : top > kNoIntegers / 2 ? set1(__uint_as_float(0x7fc00000))
                                     : exact_result(sum, top, -14));
    }
  }
};

// All key blocks of a row; the result accumulates in the output. kPlain: scores are scaled
// products.
template <bool kPlain>
__device__ __forceinline__ void attend_exact_row(const AttentionParams& s, int64_t head, int64_t r) {
  const Geometry& g = s.g;
  const ExactLayout at(g);
  ExactRow own(s, head, r);
  float* y = s.y + row_index(g, own.row) * g.dv;
  OnlineSoftmax running;
  for (int64_t c = threadIdx.x % kWarp; c < g.dv; c += kWarp) y[c] = 0;
  for (int64_t block = 0; block * kBlock < own.range.high; ++block) {
    const int64_t base = block * kBlock;
    if (base + kBlock <= own.range.low && base >= own.range.first) continue;
    const ExactCacheBlock cache = exact_cache_block(s, at, head, block);
    float mb;
    F lb;
    own.template weigh<kPlain>(at, cache, block, mb, lb);
    if (mb == -kInf) continue;
    const float by = running.join(set1(mb), lb);
    own.multiply(at, cache, [&](int64_t c, F ob) { store(y + c, fold(by, load(y + c), ob)); });
  }
  const float by = s.sinks ? running.join(set1(s.sinks[own.row.head]), set1(1.0f)) : kEmptyBlock;
  for (int64_t c = threadIdx.x % kWarp; c < g.dv; c += kWarp)
    store(y + c, normalized(fold(by, load(y + c), zero()), running.m, running.l));
}

__device__ __noinline__ void exact_row(const AttentionParams& s, int64_t head, int64_t r) {
  attend_exact_row<false>(s, head, r);
}

constexpr int kExactRowThreads = 128;
__global__ void __launch_bounds__(kExactRowThreads)
    exact_rows_kernel(const __grid_constant__ AttentionParams s) {
  trigger_and_wait();
  const int64_t warps = kExactRowThreads / kWarp, all = s.g.batch * s.g.kv_heads * s.g.rows;
  for (int64_t row = blockIdx.x * warps + threadIdx.x / kWarp; row < all; row += gridDim.x * warps)
    exact_row(s, row / s.g.rows, row % s.g.rows);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
