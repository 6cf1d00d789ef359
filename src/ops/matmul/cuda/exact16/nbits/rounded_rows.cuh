// Rows that a producer has rounded to blocks of planes (layout.cuh), as the kernels of
// matmul_nbits_exact16 for other machines than Hopper read them.
#pragma once
#include "ops/matmul/cuda/exact16/layout.cuh"
#include "ops/matmul/cuda/exact16/round_rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroupBytes = 16;  // of a row of a plane that lie together

// Where the bytes of both planes of a group of a row are.
__device__ inline const uint8_t* group_at(const Planes& a, int64_t row, int64_t k) {
  const int64_t in_tile = row % a.height;
  return a.block(0, row / a.height, k / kBlockK) + in_tile * kBlockK +
         ((k % kBlockK / kGroupBytes) ^ (in_tile & 7)) * kGroupBytes;
}
__device__ inline uint4 load_bytes(const uint8_t* from) {
  return *reinterpret_cast<const uint4*>(from);
}

// As round_planes_kernel (mma.cuh): h of all rows of ld bytes, then l; ld is a multiple of 16.
inline void enqueue_planes_of(const Planes& a, int64_t rows, int64_t ld, uint8_t* to, int32_t* scales,
                              Stream stream) {
  const int64_t groups = ld / kGroupBytes;
  launch_for_each(stream, rows * groups, [=] __device__(int64_t i) {
    const int64_t row = i / groups, k = i % groups * kGroupBytes;
    const uint8_t* const from = group_at(a, row, k);
    *reinterpret_cast<uint4*>(to + row * ld + k) = load_bytes(from);
    *reinterpret_cast<uint4*>(to + (rows + row) * ld + k) = load_bytes(from + a.height * kBlockK);
    if (k == 0) scales[row] = a.scales[row];
  });
}
// As round_rows_kernel<W, false> (round_rows.cuh): words of two integers.
inline void enqueue_words_of(const Planes& a, int64_t rows, int64_t words, const Rounded& to, Stream stream) {
  launch_for_each(stream, rows * words, [=] __device__(int64_t i) {
    const int64_t row = i / words, k = i % words * 2;
    const uint8_t* const from = group_at(a, row, k) + k % kGroupBytes;
    auto integer = [&](int j) {
      return 256 * static_cast<int8_t>(from[j]) + static_cast<int8_t>(from[a.height * kBlockK + j]);
    };
    to.words[i] = (static_cast<uint32_t>(integer(0)) & 0xffff) | static_cast<uint32_t>(integer(1)) << 16;
    if (k == 0) to.scales[row] = a.scales[row];
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
