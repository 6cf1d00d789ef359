// What the kernels of exact16 products on plain cores share: rows rounded to words of 16-bit
// integers (exact16.1, exact16.2), and the result of an exact sum (exact16.4, exact16.5).
#pragma once
#include "kernels/cuda/exact16_result.cuh"
#include "kernels/cuda/launch.h"
#include "num/exact16/quantize.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kRoundThreads = 128;
constexpr int kTile = 64, kThreadTile = 4, kTileThreads = 256;

// The rows to round: k elements `step` apart.
template <class W>
struct RowsToRound {
  const typename W::T* p;
  int64_t k, words, count, row, step;
};

// exact16.1 of a row, by a block of threads.
template <class W>
__device__ inline int32_t scale_of_block(const RowsToRound<W>& rows, const typename W::T* x,
                                         uint32_t (&warp_largest)[kRoundThreads / kWarp]) {
  uint32_t largest = 0;
  for (int64_t k = threadIdx.x; k < rows.k; k += kRoundThreads) {
    const uint32_t u = __float_as_uint(W::one(x[k * rows.step])) & 0x7fffffff;
    largest = u > largest ? u : largest;
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const uint32_t u = __shfl_xor_sync(kFullWarp, largest, step);
    largest = u > largest ? u : largest;
  }
  __syncthreads();
  if (threadIdx.x % kWarp == 0) warp_largest[threadIdx.x / kWarp] = largest;
  __syncthreads();
  for (const uint32_t u : warp_largest) largest = u > largest ? u : largest;
  return num::exact16_scale(largest);
}

// One block for each row: its scale, then words of two k. kPlanes: bytes h0 h1 l0 l1, else q0 q1.
template <class W, bool kPlanes>
__global__ void __launch_bounds__(kRoundThreads)
    round_rows_kernel(RowsToRound<W> rows, uint32_t* words, int32_t* scales) {
  trigger_and_wait();
  __shared__ uint32_t warp_largest[kRoundThreads / kWarp];
  for (int64_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
    const typename W::T* x = rows.p + i * rows.row;
    const int32_t e = scale_of_block(rows, x, warp_largest);
    if (threadIdx.x == 0) scales[i] = e;
    const bool none = e == num::kExact16NoIntegers;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
    auto integer = [&](int64_t k) {
      if (none || k >= rows.k) return 0;
      return __float2int_rn(W::one(x[k * rows.step]) * by.first * by.second);
    };
    for (int64_t w = threadIdx.x; w < rows.words; w += kRoundThreads) {
      const int q0 = integer(2 * w), q1 = integer(2 * w + 1);
      uint32_t word = (static_cast<uint32_t>(q0) & 0xffff) | static_cast<uint32_t>(q1) << 16;
      if (kPlanes) {
        const int h0 = (q0 + 128) >> 8, h1 = (q1 + 128) >> 8;
        word = (static_cast<uint32_t>(h0) & 0xff) | (static_cast<uint32_t>(h1) & 0xff) << 8 |
               (static_cast<uint32_t>(q0) & 0xff) << 16 | static_cast<uint32_t>(q1) << 24;
      }
      words[i * rows.words + w] = word;
    }
  }
}

// The words of rounded rows, then their scales.
struct Rounded {
  uint32_t* words;
  int32_t* scales;
};
inline Rounded rounded(void* memory, int64_t rows, int64_t words) {
  auto* const at = static_cast<uint32_t*>(memory);
  return {at, reinterpret_cast<int32_t*>(at + rows * words)};
}
inline size_t rounded_bytes(int64_t rows, int64_t words) {
  return static_cast<size_t>(rows * (words + 1)) * sizeof(uint32_t);
}
inline size_t aligned(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}
template <bool kPlanes, class W>
void enqueue_round(const RowsToRound<W>& rows, const Rounded& to, Stream stream) {
  launch_dependent(round_rows_kernel<W, kPlanes>, dim3(grid_for(rows.count)), dim3(kRoundThreads), 0, stream,
                   rows, to.words, to.scales);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
