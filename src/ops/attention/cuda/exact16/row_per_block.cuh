// attention_exact16 row by row, for heads of any size: a thread block computes one query row. A
// thread computes the score of one key of a block, and then columns of the output.
#pragma once
#include "ops/attention/cuda/exact16/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kExactRowThreads = kBlock, kExactRowWarps = kExactRowThreads / kWarp;
constexpr int kQueryPart = 256;  // elements of a query in shared memory at once

// f over the threads of a block, by way of shared memory; all get the result.
template <class T, class Fn>
__device__ inline T joined(T x, T* of_warps, Fn f) {
#pragma unroll
  for (int step = kWarp / 2; step; step /= 2) x = f(x, __shfl_xor_sync(kFullWarp, x, step));
  __syncthreads();
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = of_warps[0];
  for (int i = 1; i < kExactRowWarps; ++i) x = f(x, of_warps[i]);
  return x;
}

// A thread block iterates over all key blocks of its row and accumulates the result in the output.
__global__ void __launch_bounds__(kExactRowThreads)
    exact_rows_kernel(const __grid_constant__ AttentionParams s) {
  __shared__ int32_t q[kQueryPart], w[kBlock], of_warps[kExactRowWarps];
  __shared__ float maxima[kExactRowWarps];
  trigger_and_wait();
  const Geometry& g = s.g;
  const ExactLayout at(g);
  const int key = threadIdx.x;
  const int64_t head = blockIdx.x / g.rows;
  const int64_t past = s.sequences[head / g.kv_heads].past;
  const QueryRow row = query_row(g, head, blockIdx.x % g.rows);
  const VisibleKeys range = attention::visible_keys(g, s.lengths, past, row.batch, row.i);
  const float* query = s.q + row_index(g, row) * g.d;
  float* y = s.y + row_index(g, row) * g.dv;
  const auto most = [](auto a, auto b) { return a > b ? a : b; };
  const auto sum = [](int32_t a, int32_t b) { return a + b; };
  int32_t largest = 0;
  for (int64_t c = key; c < g.d; c += kExactRowThreads)
    largest = most(largest, static_cast<int32_t>(magnitude(query[c])));
  const int32_t eq = scale_of_largest(static_cast<uint32_t>(joined(largest, of_warps, most)));
  const Quantizer by_q(eq);
  OnlineSoftmax running;
  for (int64_t c = key; c < g.dv; c += kExactRowThreads) y[c] = 0;
  for (int64_t block = 0; block * kBlock < range.high; ++block) {
    const int64_t base = block * kBlock;
    if (base + kBlock <= range.low && base >= range.first) continue;
    const ExactCacheBlock own = exact_cache_block(s, at, head, block);
    int64_t product = 0;
    for (int64_t begin = 0; begin < g.d; begin += kQueryPart) {
      const int n = static_cast<int>(num::min_i64(kQueryPart, g.d - begin));
      __syncthreads();
      for (int i = key; i < n; i += kExactRowThreads) q[i] = by_q.integer(query[begin + i]);
      __syncthreads();
      const int8_t* keys = own.keys + key * at.dk + begin;
      for (int i = 0; i < n; ++i) product += int64_t{q[i]} * (keys[i] * 256 + keys[at.key_plane() + i]);
    }
    const bool written = base + key < past + g.keys;
    F x = mul(exact_result(product, eq, written ? own.key_scales[key] : kZeroRow), set1(g.scale));
    if (!ScoreMask(s, range, row, past, block).score(s, block, key, x)) x = set1(-kInf);
    const float mb = joined(x.v, maxima, [](float a, float b) { return max_nan(a, b); });
    if (mb == -kInf) continue;
    const ExactWeight weight = exact_weight(sub(x, set1(mb)).v);
    const int32_t reach = x.v == -kInf ? kHiddenKey : weight.reach(own.value_scales[key]);
    const F lb = exact_block_sum(joined(weight.fine(), of_warps, sum), mb);
    const int32_t e = joined(reach, of_warps, most);
    w[key] = weight.coarse(e - reach);
    const float by = running.join(set1(mb), lb);
    __syncthreads();
    for (int64_t c = key; c < g.dv; c += kExactRowThreads) {
      const int8_t* values = own.values + c * kBlock;
      int64_t o = 0;
      for (int j = 0; j < kBlock; ++j)
        if (w[j]) o += int64_t{w[j]} * (values[j] * 256 + values[at.value_plane() + j]);
      const F ob = e < kZeroRow / 2      ? zero()
                   : e > kNoIntegers / 2 ? set1(__uint_as_float(0x7fc00000))
                                         : exact_result(o, e, -14);
      store(y + c, fold(by, load(y + c), ob));
    }
  }
  const float by = s.sinks ? running.join(set1(s.sinks[row.head]), set1(1.0f)) : kEmptyBlock;
  for (int64_t c = key; c < g.dv; c += kExactRowThreads)
    store(y + c, normalized(fold(by, load(y + c), zero()), running.m, running.l));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
