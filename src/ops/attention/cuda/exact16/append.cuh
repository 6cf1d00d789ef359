// attention.2 of attention_exact16: rounds the rows of new keys and values to integers and appends
// their planes to the cache.
#pragma once
#include "ops/attention/cuda/exact16/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The scale of a row, by a warp.
__device__ inline int32_t scale_of_row(const float* x, int64_t n) {
  uint32_t largest = 0;
#pragma unroll 4
  for (int64_t c = threadIdx.x % kWarp; c < n; c += kWarp) largest = umax(largest, magnitude(x[c]));
  return scale_of_largest(largest_of_warp(largest));
}
// A warp writes the row of key j of a block, and its scale.
__device__ inline void append_key(const ExactLayout& at, const ExactCacheBlock& to, int j, const float* x,
                                  int64_t d) {
  const int32_t e = scale_of_row(x, d);
  const Quantizer by(e);
  int8_t* high = to.keys + j * at.dk;
#pragma unroll 4
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

// A warp appends new key i of a head, or its value.
__device__ inline void append_row(const AttentionParams& s, const ExactLayout& at, int64_t head, int64_t i,
                                  bool key) {
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp;
  const int64_t position = s.sequences[head / g.kv_heads].past + i;
  const ExactCacheBlock to = exact_cache_block(s, at, head, position / kBlock);
  const int j = static_cast<int>(position % kBlock);
  const int64_t row = attention::head_row(g, head / g.kv_heads, i, head % g.kv_heads, g.keys, g.kv_heads);
  if (key) return append_key(at, to, j, s.k + row * g.d, g.d);
  const float* x = s.v + row * g.dv;
  const int32_t e = scale_of_row(x, g.dv);
  const Quantizer by(e);
  int8_t* high = to.values + j;
#pragma unroll 4
  for (int64_t c = lane; c < g.dv; c += kWarp) {
    const int32_t q = by.integer(x[c]), h = (q + 128) >> 8;
    high[c * kBlock] = static_cast<int8_t>(h);
    high[at.value_plane() + c * kBlock] = static_cast<int8_t>(q - h * 256);
  }
  if (lane == 0) append_value_scale(to, j, e);
}

constexpr int64_t kFewExactKeys = 16;
constexpr int kExactAppendThreads = 128;
// Fewer new keys than that.
__global__ void __launch_bounds__(kExactAppendThreads)
    exact_append_kernel(const __grid_constant__ AttentionParams s) {
  trigger_and_wait();
  const Geometry& g = s.g;
  const int64_t all = 2 * g.batch * g.kv_heads * g.keys, warps = kExactAppendThreads / kWarp;
  for (int64_t unit = blockIdx.x * warps + threadIdx.x / kWarp; unit < all; unit += gridDim.x * warps)
    append_row(s, ExactLayout(g), unit / 2 / g.keys, unit / 2 % g.keys, unit % 2);
}

constexpr int kAppendRows = 4;  // of a warp: neighbours, so that values turn four at a time
constexpr int kBlockAppendThreads = kBlock / kAppendRows * kWarp, kBlockAppendColumns = 128;

// The part of a key block that is new: keys [begin, end), of which a warp has four.
struct ExactAppendBlock {
  ExactCacheBlock to;
  int begin, end, first;
  const float* from[kAppendRows];  // null if not new
  int64_t n;                       // elements of a row

  // keys: of k or of v.
  __device__ ExactAppendBlock(const AttentionParams& s, const ExactLayout& at, int64_t head, int64_t nth,
                              bool keys)
      : first(threadIdx.x / kWarp * kAppendRows), n(keys ? s.g.d : s.g.dv) {
    const Geometry& g = s.g;
    const int64_t past = s.sequences[head / g.kv_heads].past, block = past / kBlock + nth,
                  base = block * kBlock - past;
    begin = base < 0 ? static_cast<int>(-base) : 0;
    end = base < g.keys ? static_cast<int>(num::min_i64(kBlock, g.keys - base)) : 0;
    if (begin >= end) return;
    to = exact_cache_block(s, at, head, block);
    const int64_t row =
        attention::head_row(g, head / g.kv_heads, base, head % g.kv_heads, g.keys, g.kv_heads);
    const int64_t step = g.heads_first ? 1 : g.kv_heads;
#pragma unroll
    for (int r = 0; r < kAppendRows; ++r)
      from[r] = is_new(first + r) ? (keys ? s.k : s.v) + (row + (first + r) * step) * n : nullptr;
  }
  __device__ bool is_new(int j) const {
    return j >= begin && j < end;
  }
  __device__ float element(int r, int64_t c) const {
    return from[r] && c < n ? from[r][c] : 0.0f;
  }
  __device__ void scales(int32_t (&e)[kAppendRows]) const {
    uint32_t largest[kAppendRows] = {};
#pragma unroll 4
    for (int64_t c = threadIdx.x % kWarp; c < n; c += kWarp)
#pragma unroll
      for (int r = 0; r < kAppendRows; ++r) largest[r] = umax(largest[r], magnitude(element(r, c)));
#pragma unroll
    for (int r = 0; r < kAppendRows; ++r) e[r] = scale_of_largest(largest_of_warp(largest[r]));
  }
  __device__ void append_keys(const ExactLayout& at) const {
    const int lane = threadIdx.x % kWarp;
    int32_t e[kAppendRows];
    scales(e);
#pragma unroll
    for (int r = 0; r < kAppendRows; ++r) {
      if (!from[r]) continue;
      const int j = first + r;
      const Quantizer by(e[r]);
      for (int64_t c = 4 * lane; c < at.dk; c += 4 * kWarp) {
        const int32_t q[4] = {by.integer(element(r, c)), by.integer(element(r, c + 1)),
                              by.integer(element(r, c + 2)), by.integer(element(r, c + 3))};
        const PlaneBytes bytes = plane_bytes(q);
        *reinterpret_cast<uint32_t*>(to.keys + j * at.dk + c) = bytes.high;
        *reinterpret_cast<uint32_t*>(to.keys + at.key_plane() + j * at.dk + c) = bytes.low;
      }
      if (lane == 0) to.key_scales[j] = e[r], to.key_powers[j] = usual_power(e[r]);
    }
  }
  // turned: words of four keys of a column.
  __device__ void append_values(const ExactLayout& at,
                                uint32_t (&turned)[2][kBlockAppendColumns][kBlock / 4 + 1]) const {
    const int lane = threadIdx.x % kWarp;
    int32_t e[kAppendRows];
    scales(e);
    for (int64_t column = 0; column < n; column += kBlockAppendColumns) {
      const int columns = static_cast<int>(num::min_i64(kBlockAppendColumns, n - column));
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kBlockAppendColumns / kWarp; ++i) {
        const int c = i * kWarp + lane;
        int32_t q[kAppendRows];
#pragma unroll
        for (int r = 0; r < kAppendRows; ++r) q[r] = Quantizer(e[r]).integer(element(r, column + c));
        const PlaneBytes bytes = plane_bytes(q);
        turned[0][c][first / 4] = bytes.high, turned[1][c][first / 4] = bytes.low;
      }
      __syncthreads();
      for (int i = threadIdx.x; i < 2 * columns * (kBlock / 4); i += kBlockAppendThreads) {
        const int word = i % (kBlock / 4), c = i / (kBlock / 4) % columns, plane = i / (kBlock / 4) / columns;
        const uint32_t w = turned[plane][c][word];
        int8_t* values = to.values + plane * at.value_plane() + (column + c) * kBlock + 4 * word;
        if (is_new(4 * word) && is_new(4 * word + 3)) {
          *reinterpret_cast<uint32_t*>(values) = w;
        } else {
#pragma unroll
          for (int r = 0; r < 4; ++r)
            if (is_new(4 * word + r)) values[r] = static_cast<int8_t>(w >> 8 * r);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kAppendRows; ++r)
      if (from[r] && lane == 0) append_value_scale(to, first + r, e[r]);
  }
};
// Many new keys: a thread block takes the keys or the values of a key block of a head. The first
// key block is the one that contains the sequence's position `past`.
__global__ void __launch_bounds__(kBlockAppendThreads)
    exact_append_blocks_kernel(const __grid_constant__ AttentionParams s, int blocks) {
  __shared__ uint32_t turned[2][kBlockAppendColumns][kBlock / 4 + 1];
  trigger_and_wait();
  const ExactLayout at(s.g);
  const ExactAppendBlock own(s, at, blockIdx.x / blocks, blockIdx.x % blocks, blockIdx.y == 0);
  if (own.begin >= own.end) return;
  if (blockIdx.y == 0)
    own.append_keys(at);
  else
    own.append_values(at, turned);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
