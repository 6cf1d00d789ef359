// attention.2 of attention_exact16: rounds the rows of new keys and values to integers and appends
// their planes to the cache.
#pragma once
#include "ops/attention/cuda/exact16/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The scale of a row, by a warp.
__device__ inline int32_t scale_of_row(const float* x, int64_t n) {
  uint32_t largest = 0;
  for (int64_t c = threadIdx.x % kWarp; c < n; c += kWarp) largest = umax(largest, magnitude(x[c]));
  return scale_of_largest(largest_of_warp(largest));
}
// A warp writes the row of key j of a block, and its scale.
__device__ inline void append_key(const ExactLayout& at, const ExactCacheBlock& to, int j, const float* x,
                                  int64_t d) {
  const int32_t e = scale_of_row(x, d);
  const Quantizer by(e);
  int8_t* high = to.keys + j * at.dk;
  for (int64_t c = threadIdx.x % kWarp; c < at.dk; c += kWarp) {
    const int32_t q = c < d ? by.integer(x[c]) : 0, h = (q + 128) >> 8;
    high[c] = static_cast<int8_t>(h), high[at.key_plane() + c] = static_cast<int8_t>(q - h * 256);
  }
  if (threadIdx.x % kWarp == 0) to.key_scales[j] = e, to.key_powers[j] = usual_power(e);
}
__device__ inline void append_value_scale(const ExactCacheBlock& to, int j, int32_t e) {
  to.value_scales[j] = e, to.value_reaches[j] = usual_reach(e);
  to.value_shifts[j] = static_cast<int32_t>(static_cast<uint32_t>(e) << 23);
}

constexpr int kExactAppendThreads = 128;
// Few new keys: a warp takes a row of the keys and that of the values.
__global__ void __launch_bounds__(kExactAppendThreads)
    exact_append_kernel(const __grid_constant__ AttentionParams s) {
  trigger_and_wait();
  const Geometry& g = s.g;
  const ExactLayout at(g);
  const int lane = threadIdx.x % kWarp;
  const int64_t all = g.batch * g.kv_heads * g.keys, warps = kExactAppendThreads / kWarp;
  for (int64_t unit = blockIdx.x * warps + threadIdx.x / kWarp; unit < all; unit += gridDim.x * warps) {
    const int64_t head = unit / g.keys, i = unit % g.keys, position = s.sequences[head / g.kv_heads].past + i;
    const ExactCacheBlock to = exact_cache_block(s, at, head, position / kBlock);
    const int j = static_cast<int>(position % kBlock);
    const int64_t row = attention::head_row(g, head / g.kv_heads, i, head % g.kv_heads, g.keys, g.kv_heads);
    append_key(at, to, j, s.k + row * g.d, g.d);
    const float* x = s.v + row * g.dv;
    const int32_t e = scale_of_row(x, g.dv);
    const Quantizer by(e);
    int8_t* high = to.values + j;
    for (int64_t c = lane; c < g.dv; c += kWarp) {
      const int32_t q = by.integer(x[c]), h = (q + 128) >> 8;
      high[c * kBlock] = static_cast<int8_t>(h);
      high[at.value_plane() + c * kBlock] = static_cast<int8_t>(q - h * 256);
    }
    if (lane == 0) append_value_scale(to, j, e);
  }
}

constexpr int kBlockAppendThreads = 256, kBlockAppendColumns = 128;
// Many new keys: a thread block takes a key block of a head; values turn in shared memory. The
// first key block is the one that contains the sequence's position `past`.
__global__ void __launch_bounds__(kBlockAppendThreads)
    exact_append_blocks_kernel(const __grid_constant__ AttentionParams s, int blocks) {
  __shared__ int8_t turned[2][kBlockAppendColumns][kBlock + 4];
  __shared__ int32_t scales[kBlock];
  trigger_and_wait();
  const Geometry& g = s.g;
  const ExactLayout at(g);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t head = blockIdx.x / blocks, past = s.sequences[head / g.kv_heads].past,
                block = past / kBlock + blockIdx.x % blocks, base = block * kBlock - past;
  if (base >= g.keys) return;
  const int begin = base < 0 ? static_cast<int>(-base) : 0;
  const int end = static_cast<int>(num::min_i64(kBlock, g.keys - base));
  const ExactCacheBlock to = exact_cache_block(s, at, head, block);
  const auto row = [&](int j) {
    return attention::head_row(g, head / g.kv_heads, base + j, head % g.kv_heads, g.keys, g.kv_heads);
  };
  for (int j = begin + warp; j < end; j += kBlockAppendThreads / kWarp) {
    append_key(at, to, j, s.k + row(j) * g.d, g.d);
    const int32_t e = scale_of_row(s.v + row(j) * g.dv, g.dv);
    if (lane == 0) scales[j] = e, append_value_scale(to, j, e);
  }
  for (int64_t first = 0; first < g.dv; first += kBlockAppendColumns) {
    const int columns = static_cast<int>(num::min_i64(kBlockAppendColumns, g.dv - first));
    __syncthreads();
    for (int j = begin + warp; j < end; j += kBlockAppendThreads / kWarp) {
      const Quantizer by(scales[j]);
      const float* x = s.v + row(j) * g.dv + first;
      for (int c = lane; c < columns; c += kWarp) {
        const int32_t q = by.integer(x[c]), h = (q + 128) >> 8;
        turned[0][c][j] = static_cast<int8_t>(h), turned[1][c][j] = static_cast<int8_t>(q - h * 256);
      }
    }
    __syncthreads();
    for (int plane = 0; plane < 2; ++plane) {
      int8_t* values = to.values + plane * at.value_plane() + first * kBlock;
      if (end - begin == kBlock)
        for (int i = threadIdx.x; i < columns * kBlock / 4; i += kBlockAppendThreads)
          reinterpret_cast<int32_t*>(values)[i] =
              *reinterpret_cast<const int32_t*>(&turned[plane][i / (kBlock / 4)][i % (kBlock / 4) * 4]);
      else
        for (int i = threadIdx.x; i < columns * kBlock; i += kBlockAppendThreads)
          if (const int j = i % kBlock; j >= begin && j < end) values[i] = turned[plane][i / kBlock][j];
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
