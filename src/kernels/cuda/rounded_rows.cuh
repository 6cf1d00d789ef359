// How a kernel writes the rows of its result as RoundedRows (kernels/gpu_kernel.h; exact16.1,
// exact16.2). Scales behind those of the rows, up to the end of the last tile, are zero: a product
// counts with them.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/exact16/quantize.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kRoundedK = 128;  // elements of a row in a block; rows are zero behind their end

// The larger of `a` and the magnitude of x, as bits, which order as magnitudes do.
__device__ inline uint32_t largest_of(uint32_t a, float x) {
  const uint32_t u = __float_as_uint(x) & 0x7fffffff;
  return u > a ? u : a;
}
__device__ inline uint32_t largest_in_warp(uint32_t largest) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const uint32_t u = __shfl_xor_sync(kFullWarp, largest, step);
    largest = u > largest ? u : largest;
  }
  return largest;
}
// Called by all threads of a block, whole warps; between two calls lies another barrier.
__device__ inline uint32_t largest_in_block(uint32_t largest) {
  __shared__ uint32_t of_warp[32];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  largest = largest_in_warp(largest);
  if (lane == 0) of_warp[warp] = largest;
  __syncthreads();
  return largest_in_warp(lane < warps ? of_warp[lane] : 0);
}

// The scales behind `rows` rows, by `threads` threads.
__device__ inline void clear_scales(const RoundedRows& to, int64_t rows, int thread, int threads) {
  for (int64_t r = rows + thread; r < to.tiles * to.height; r += threads) to.scales[r] = 0;
}

// A row of `to`, written by several threads.
class RoundedRow {
 public:
  // e: its scale.
  __device__ RoundedRow(const RoundedRows& to, int64_t row, int32_t e)
      : none_(e == num::kExact16NoIntegers), by_(num::exact16_factors(none_ ? 0 : e)), height_(to.height) {
    const int shift = 31 - __clz(height_);  // a power of two
    row_ = static_cast<int>(row & (height_ - 1));
    blocks_ = to.blocks + (row >> shift) * to.chunks * block_bytes() + row_ * kRoundedK;
  }
  // Elements i ... i + kV - 1, kV 1, 2 or 4 and i a multiple of it.
  template <int kV>
  __device__ void store(int64_t i, const float* x) const {
    uint32_t high = 0, low = 0;
#pragma unroll
    for (int k = 0; k < kV; ++k) {
      const int q = none_ ? 0 : __float2int_rn(x[k] * by_.first * by_.second);
      low |= (static_cast<uint32_t>(q) & 255) << 8 * k;
      high |= (static_cast<uint32_t>(q + 128) >> 8 & 255) << 8 * k;
    }
    const int at = static_cast<int>(i % kRoundedK);
    uint8_t* const p = blocks_ + i / kRoundedK * block_bytes() + ((at / 16) ^ (row_ & 7)) * 16 + at % 16;
    store_bytes<kV>(p, high);
    store_bytes<kV>(p + height_ * kRoundedK, low);
  }

 private:
  bool none_;
  num::Exact16Factors by_;
  int height_, row_;
  uint8_t* blocks_;

  __device__ int64_t block_bytes() const {
    return int64_t{2} * height_ * kRoundedK;
  }
  template <int kV>
  __device__ static void store_bytes(uint8_t* p, uint32_t bytes) {
    if constexpr (kV == 4)
      *reinterpret_cast<uint32_t*>(p) = bytes;
    else if constexpr (kV == 2)
      *reinterpret_cast<uint16_t*>(p) = static_cast<uint16_t>(bytes);
    else
      *p = static_cast<uint8_t>(bytes);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
