// Attention for heads wider than one chain of a contraction (D > 256). A thread block computes one
// query row. A thread computes the score of one key of a block, and then columns of the output.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kWideThreads = kBlock, kWideWarps = kWideThreads / kWarp;

// A thread block iterates over all key blocks of its row and accumulates the result in the output.
__global__ void __launch_bounds__(kWideThreads) wide_heads_kernel(const __grid_constant__ AttentionParams s) {
  __shared__ float q[num::kChain], p[kBlock], last[kWideWarps];  // p < 0: a masked key
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, key = key_of_slot(threadIdx.x);
  const int64_t head = blockIdx.x / g.rows;
  const HeadCache cache = head_cache(s, head);
  const QueryRow row = query_row(g, head, blockIdx.x % g.rows);
  const VisibleKeys range = attention::visible_keys(g, s.lengths, cache.past, row.batch, row.i);
  const float* query = s.q + row_index(g, row) * g.d;
  float* y = s.y + row_index(g, row) * g.dv;
  OnlineSoftmax running;
  for (int64_t c = threadIdx.x; c < g.dv; c += kWideThreads) y[c] = 0;
  for (int64_t block = 0; block * kBlock < range.high; ++block) {
    const int64_t base = block * kBlock;
    if (base + kBlock <= range.low && base >= range.first) continue;
    const float* keys = key_block(s, cache, block) + threadIdx.x;
    F segment[num::kSegments] = {};
    for (int64_t b = 0; b < num::contraction_blocks(g.d); ++b) {
      const num::Range k_range = num::block_range(b, g.d);
      const int n = static_cast<int>(k_range.end - k_range.begin);
      __syncthreads();
      for (int i = threadIdx.x; i < n; i += kWideThreads) q[i] = query[k_range.begin + i];
      __syncthreads();
      F chain = zero();
#pragma unroll 8
      for (int i = 0; i < n; ++i)
        chain = fma(load(q + i), load(keys + (k_range.begin + i) * kBlock), chain);  // contraction.2
      F& sum = segment[num::block_position(b, g.d).segment];
      sum = add(sum, chain);  // contraction.3
    }
    F x = mul(num::join_segments(segment), set1(g.scale));
    const bool visible = ScoreMask(s, range, row, cache.past, block).score(s, block, key, x);
    float mb = visible ? x.v : -kInf;
#pragma unroll
    for (int step = kWarp / 2; step; step /= 2) mb = max_nan(mb, __shfl_xor_sync(kFullWarp, mb, step));
    if (lane == 0) last[warp] = mb;
    __syncthreads();
    for (int i = 0; i < kWideWarps; ++i) mb = max_nan(mb, last[i]);
    p[key] = visible ? exp_stored(sub(x, set1(mb))).v : -1.0f;
    __syncthreads();
    float lanes[kBlock / kWarp];
    for (int i = 0; i < kBlock / kWarp; ++i) {
      const float at = p[i * kWarp + lane];
      lanes[i] = at < 0 ? 0.0f : at;
    }
    const float by = running.join(set1(mb), set1(num::INVAR_ISA_NS::block_sum<kWarp>(lanes)));
    if (by == kEmptyBlock) continue;
    const float* values = value_block(s, cache, block);
    const int end = static_cast<int>(num::min_i64(kBlock, range.high - base));
    for (int64_t c = threadIdx.x; c < g.dv; c += kWideThreads) {
      F o = zero();
      for (int j = 0; j < end; ++j)
        if (!(p[j] < 0)) o = fma(load(p + j), load(values + j * g.dv_padded + c), o);  // attention.8
      store(y + c, fold(by, load(y + c), o));
    }
  }
  const float by = s.sinks ? running.join(set1(s.sinks[row.head]), set1(1.0f)) : kEmptyBlock;
  for (int64_t c = threadIdx.x; c < g.dv; c += kWideThreads)
    store(y + c, normalized(fold(by, load(y + c), zero()), running.m, running.l));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
