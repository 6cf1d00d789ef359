// Large plain operands whose k are contiguous are transposed first: tiles of the other layout load
// with a quarter of the instructions (4 to 14 % of 4096^3 and 8192^3, H200; a transpose takes under
// 1 %).
#pragma once
#include "ops/matmul/cuda/float_b.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Whether a and b are transposed, and the bytes of their copies.
struct Turned {
  bool a, b;
  size_t bytes_a, bytes_b;
};
inline Turned turned_operands(const Shape& s, const View& b, bool forced) {
  constexpr double kProducts = 8e9;            // from 2048^3 on
  constexpr int64_t kReads = 2048;             // how often an element is read, at least
  constexpr int64_t kMost = int64_t{1} << 20;  // rows or columns: one dimension of a grid
  const bool plain = !b.packed && b.dtype == DType::f32 && s.batches == 1 && s.m > 0 && s.n > 0 && s.k > 0 &&
                     s.m < kMost && s.n < kMost && s.k < kMost && s.n % 4 == 0;
  const bool large =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) > kProducts;
  Turned t{};
  if (!plain || !(large || forced)) return t;
  auto bytes = [](int64_t n) { return (static_cast<size_t>(n) * sizeof(float) + 255) / 256 * 256; };
  t.a = !s.trans_a && s.m % 4 == 0 && (forced || s.n >= kReads);
  t.b = s.trans_b && (forced || s.m >= kReads);
  t.bytes_a = t.a ? bytes(s.m * s.k) : 0, t.bytes_b = t.b ? bytes(s.k * s.n) : 0;
  return t;
}

constexpr int kTurnedTile = 32, kTurnedRows = 8;
__global__ void __launch_bounds__(kTurnedTile* kTurnedRows)
    turn_kernel(const float* x, float* y, int64_t rows, int64_t columns) {
  __shared__ float tile[kTurnedTile][kTurnedTile + 1];
  const int64_t row = int64_t{blockIdx.y} * kTurnedTile, column = int64_t{blockIdx.x} * kTurnedTile;
  INVAR_UNROLL
  for (int i = threadIdx.y; i < kTurnedTile; i += kTurnedRows)
    if (row + i < rows && column + threadIdx.x < columns)
      tile[i][threadIdx.x] = x[(row + i) * columns + column + threadIdx.x];
  __syncthreads();
  INVAR_UNROLL
  for (int i = threadIdx.y; i < kTurnedTile; i += kTurnedRows)
    if (column + i < columns && row + threadIdx.x < rows)
      y[(column + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];
}
// y [columns, rows] from x [rows, columns].
inline void enqueue_turn(const float* x, float* y, int64_t rows, int64_t columns, Stream stream) {
  launch(turn_kernel,
         dim3(static_cast<unsigned>(ceil_div(columns, kTurnedTile)),
              static_cast<unsigned>(ceil_div(rows, kTurnedTile))),
         dim3(kTurnedTile, kTurnedRows), 0, stream, x, y, rows, columns);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
