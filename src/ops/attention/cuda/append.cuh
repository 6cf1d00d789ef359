// attention.2: appends new keys and values to the KV cache; and transposes queries for prefill
// tiles.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kTileColumns = 32;  // columns of a key block that a thread block moves
constexpr int kAppendThreads = 256;

// Thread blocks: kTileColumns columns of the keys or of the values of a key block. The first key
// block is the one that contains the sequence's position `past`.
__global__ void __launch_bounds__(kAppendThreads)
    append_kernel(const __grid_constant__ AttentionParams s, int blocks) {
  __shared__ float tile[kTileColumns][kBlock + 1];
  const Geometry& g = s.g;
  const int64_t key_pieces = ceil_div(g.d, kTileColumns), pieces = key_pieces + ceil_div(g.dv, kTileColumns),
                head = blockIdx.x / pieces / blocks;
  const HeadCache cache = head_cache(s, head);
  const int64_t past = cache.past, piece = blockIdx.x % pieces,
                block = past / kBlock + blockIdx.x / pieces % blocks;
  const int64_t base = block * kBlock - past;  // the block's first position, counted in new ones
  auto is_new = [&](int i) { return base + i >= 0 && base + i < g.keys; };
  auto row = [&](int i) {
    return attention::head_row(g, head / g.kv_heads, base + i, head % g.kv_heads, g.keys, g.kv_heads);
  };
  if (base >= g.keys) return;
  if (piece >= key_pieces) {
    const int64_t begin = (piece - key_pieces) * kTileColumns;
    float* values = value_block(s, cache, block);
    for (int i = threadIdx.x; i < kTileColumns * kBlock; i += kAppendThreads) {
      const int64_t column = begin + i % kTileColumns;
      if (is_new(i / kTileColumns) && column < g.dv)
        values[i / kTileColumns * g.dv_padded + column] = s.v[row(i / kTileColumns) * g.dv + column];
    }
    return;
  }
  const int64_t begin = piece * kTileColumns;
  const int columns = static_cast<int>(num::min_i64(kTileColumns, g.d - begin));
  for (int i = threadIdx.x; i < kTileColumns * kBlock; i += kAppendThreads)
    if (is_new(i / kTileColumns) && i % kTileColumns < columns)
      tile[i % kTileColumns][i / kTileColumns] = s.k[row(i / kTileColumns) * g.d + begin + i % kTileColumns];
  __syncthreads();
  float* keys = key_block(s, cache, block) + begin * kBlock;
  for (int i = threadIdx.x; i < columns * kBlock; i += kAppendThreads)
    if (const int key = key_of_slot(i % kBlock); is_new(key)) keys[i] = tile[i / kBlock][key];
}

// Queries, kRows rows of a key head at a time, -> [D][kRows].
template <int kRows>
__global__ void __launch_bounds__(kAppendThreads)
    transpose_queries_kernel(const __grid_constant__ AttentionParams s, int tiles) {
  __shared__ float tile[kTileColumns][kRows + 1];
  const Geometry& g = s.g;
  const int64_t pieces = ceil_div(g.d, kTileColumns), begin = blockIdx.x % pieces * kTileColumns,
                first = blockIdx.x / pieces % tiles * kRows, head = blockIdx.x / pieces / tiles;
  const int columns = static_cast<int>(num::min_i64(kTileColumns, g.d - begin));
  for (int i = threadIdx.x; i < kRows * kTileColumns; i += kAppendThreads) {
    const int64_t row = first + i / kTileColumns, column = i % kTileColumns;
    if (column < columns)
      tile[column][i / kTileColumns] =
          row < g.rows ? s.q[row_index(g, query_row(g, head, row)) * g.d + begin + column] : 0.0f;
  }
  __syncthreads();
  float* to = s.queries_t + ((head * tiles + first / kRows) * g.d + begin) * kRows;
  for (int i = threadIdx.x; i < columns * kRows; i += kAppendThreads) to[i] = tile[i / kRows][i % kRows];
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
