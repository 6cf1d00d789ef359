// attention.2: new keys and values into the memory; and queries turned for tiles.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kPiece = 32;  // columns of a block that a thread block moves
constexpr int kAppendThreads = 256;

// One piece of the keys or of the values of a block. The first block is the one that the sequence's `past` stands in.
__global__ void __launch_bounds__(kAppendThreads) append_kernel(const __grid_constant__ Step s, int blocks) {
  __shared__ float tile[kPiece][kBlock + 1];
  const Geometry& g = s.g;
  const int64_t key_pieces = ceil_div(g.d, kPiece), pieces = key_pieces + ceil_div(g.dv, kPiece),
                head = blockIdx.x / pieces / blocks;
  const Memory m = memory_of(s, head);
  const int64_t past = m.past, piece = blockIdx.x % pieces,
                block = past / kBlock + blockIdx.x / pieces % blocks;
  const int64_t base = block * kBlock - past;  // of the block's first position among the new ones
  auto is_new = [&](int i) { return base + i >= 0 && base + i < g.keys; };
  auto row = [&](int i) {
    return attention::head_row(g, head / g.kv_heads, base + i, head % g.kv_heads, g.keys, g.kv_heads);
  };
  if (base >= g.keys) return;
  if (piece >= key_pieces) {
    const int64_t begin = (piece - key_pieces) * kPiece;
    float* values = values_of(s, m, block);
    for (int i = threadIdx.x; i < kPiece * kBlock; i += kAppendThreads) {
      const int64_t column = begin + i % kPiece;
      if (is_new(i / kPiece) && column < g.dv)
        values[i / kPiece * g.dv_padded + column] = s.v[row(i / kPiece) * g.dv + column];
    }
    return;
  }
  const int64_t begin = piece * kPiece;
  const int columns = static_cast<int>(num::min_i64(kPiece, g.d - begin));
  for (int i = threadIdx.x; i < kPiece * kBlock; i += kAppendThreads)
    if (is_new(i / kPiece) && i % kPiece < columns)
      tile[i % kPiece][i / kPiece] = s.k[row(i / kPiece) * g.d + begin + i % kPiece];
  __syncthreads();
  float* keys = keys_of(s, m, block) + begin * kBlock;
  for (int i = threadIdx.x; i < columns * kBlock; i += kAppendThreads)
    if (const int key = key_at(i % kBlock); is_new(key)) keys[i] = tile[i / kBlock][key];
}

// Queries of runs of kRows rows of a key head -> [D][kRows].
template <int kRows>
__global__ void __launch_bounds__(kAppendThreads) turn_kernel(const __grid_constant__ Step s, int tiles) {
  __shared__ float tile[kPiece][kRows + 1];
  const Geometry& g = s.g;
  const int64_t pieces = ceil_div(g.d, kPiece), begin = blockIdx.x % pieces * kPiece,
                first = blockIdx.x / pieces % tiles * kRows, head = blockIdx.x / pieces / tiles;
  const int columns = static_cast<int>(num::min_i64(kPiece, g.d - begin));
  for (int i = threadIdx.x; i < kRows * kPiece; i += kAppendThreads) {
    const int64_t row = first + i / kPiece, column = i % kPiece;
    if (column < columns)
      tile[column][i / kPiece] =
          row < g.rows ? s.q[place(g, row_of(g, head, row)) * g.d + begin + column] : 0.0f;
  }
  __syncthreads();
  float* to = s.queries + ((head * tiles + first / kRows) * g.d + begin) * kRows;
  for (int i = threadIdx.x; i < columns * kRows; i += kAppendThreads) to[i] = tile[i / kRows][i % kRows];
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
