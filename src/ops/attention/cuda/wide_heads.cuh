// Heads too wide for one chain of a contraction (D > 256), a row at a time: one thread for each key of a block, then for each
// value column.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kRowThreads = kBlock, kRowWarps = kRowThreads / kWarp;

// A row over all its blocks, its result growing where it belongs.
__global__ void __launch_bounds__(kRowThreads) row_kernel(const __grid_constant__ Step s) {
  __shared__ float q[num::kChain], p[kBlock], last[kRowWarps];  // p negative: hidden
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, key = key_at(threadIdx.x);
  const int64_t head = blockIdx.x / g.rows;
  const Memory memory = memory_of(s, head);
  const Row row = row_of(g, head, blockIdx.x % g.rows);
  const Sight sight = attention::sight(g, s.lengths, memory.past, row.batch, row.i);
  const float* query = s.q + place(g, row) * g.d;
  float* y = s.y + place(g, row) * g.dv;
  Folded folded;
  for (int64_t c = threadIdx.x; c < g.dv; c += kRowThreads) y[c] = 0;
  for (int64_t block = 0; block * kBlock < sight.high; ++block) {
    const int64_t base = block * kBlock;
    if (base + kBlock <= sight.low && base >= sight.first) continue;
    const float* keys = keys_of(s, memory, block) + threadIdx.x;
    F segment[num::kSegments] = {};
    for (int64_t b = 0; b < num::contraction_blocks(g.d); ++b) {
      const num::Range range = num::block_range(b, g.d);
      const int n = static_cast<int>(range.end - range.begin);
      __syncthreads();
      for (int i = threadIdx.x; i < n; i += kRowThreads) q[i] = query[range.begin + i];
      __syncthreads();
      F chain = zero();
#pragma unroll 8
      for (int i = 0; i < n; ++i) chain = fma(load(q + i), load(keys + (range.begin + i) * kBlock), chain);
      F& sum = segment[num::block_place(b, g.d).segment];
      sum = add(sum, chain);
    }
    F x = mul(num::join_segments(segment), set1(g.scale));
    const bool seen = Scores(s, sight, row, block).score(s, block, key, x);
    float mb = seen ? x.v : -kInf;
#pragma unroll
    for (int step = kWarp / 2; step; step /= 2) mb = most(mb, __shfl_xor_sync(kAllLanes, mb, step));
    if (lane == 0) last[warp] = mb;
    __syncthreads();
    for (int i = 0; i < kRowWarps; ++i) mb = most(mb, last[i]);
    p[key] = seen ? exp_stored(sub(x, set1(mb))).v : -1.0f;
    __syncthreads();
    float lanes[kBlock / kWarp];
    for (int i = 0; i < kBlock / kWarp; ++i) {
      const float at = p[i * kWarp + lane];
      lanes[i] = at < 0 ? 0.0f : at;
    }
    const float by = folded.join(set1(mb), set1(num::INVAR_ISA_NS::block_sum<kWarp>(lanes)));
    if (by == kNothing) continue;
    const float* values = values_of(s, memory, block);
    const int end = static_cast<int>(num::min_i64(kBlock, sight.high - base));
    for (int64_t c = threadIdx.x; c < g.dv; c += kRowThreads) {
      F o = zero();
      for (int j = 0; j < end; ++j)
        if (!(p[j] < 0)) o = fma(load(p + j), load(values + j * g.dv_padded + c), o);  // attention.8
      store(y + c, fold(by, load(y + c), o));
    }
  }
  const float by = s.sinks ? folded.join(set1(s.sinks[row.head]), set1(1.0f)) : kNothing;
  for (int64_t c = threadIdx.x; c < g.dv; c += kRowThreads)
    store(y + c, result(fold(by, load(y + c), zero()), folded.m, folded.l));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
