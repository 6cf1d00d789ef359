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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kFullWarp, largest);
#else
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const uint32_t u = __shfl_xor_sync(kFullWarp, largest, step);
    largest = u > largest ? u : largest;
  }
  return largest;
#endif
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

// Of four neighbouring lanes: lane j gets byte j of each, in their order.
__device__ inline uint32_t transpose_bytes(uint32_t own) {
  const uint32_t pair = __shfl_xor_sync(kFullWarp, own, 1);
  own = __byte_perm(own, pair, threadIdx.x & 1 ? 0x3715 : 0x6240);
  const uint32_t other = __shfl_xor_sync(kFullWarp, own, 2);
  return __byte_perm(own, other, threadIdx.x & 2 ? 0x3276 : 0x5410);
}

// The scales behind `rows` rows, by `threads` threads.
__device__ inline void clear_scales(const RoundedRows& to, int64_t rows, int thread, int threads) {
#pragma unroll 1
  for (int64_t r = rows + thread; r < to.tiles * to.height; r += threads) to.scales[r] = 0;
}

// A row of `to`, written by several threads.
class RoundedRow {
 public:
  // e: its scale.
  __device__ RoundedRow(const RoundedRows& to, int64_t row, int32_t e)
      : none_(e == num::kExact16NoIntegers),
        by_(num::exact16_factors(none_ ? 0 : e)),
        height_(to.height),
        block_bytes_(2u * to.height * kRoundedK) {
    const int shift = 31 - __clz(height_);  // a power of two
    row_ = static_cast<int>(row & (height_ - 1));
    blocks_ = to.blocks + (row >> shift) * to.chunks * block_bytes_ + row_ * kRoundedK;
  }
  // The bytes of the integers of kV elements, kV 1, 2 or 4, and where they go: to elements i ...
  // i + kV - 1, i a multiple of kV.
  struct Bytes {
    uint32_t high, low;
  };
  template <int kV>
  __device__ Bytes bytes(const float* x) const {
    // A sum with 3 * 2^22 rounds to an integer, ties to even, and leaves it in the low bits.
    constexpr float kInteger = 0x1.8p23f;
    uint32_t low[kV], high[kV];  // in byte 0 and in byte 1
#pragma unroll
    for (int k = 0; k < kV; ++k) {
      const float enlarged = x[k] * by_.first;
      low[k] = __float_as_uint(__fmaf_rn(enlarged, by_.second, kInteger));
      high[k] = __float_as_uint(__fmaf_rn(enlarged, by_.second, kInteger + 128));
    }
    return {none_ ? 0 : gather<1, kV>(high), none_ ? 0 : gather<0, kV>(low)};
  }
  template <int kV>
  __device__ void put(int64_t i, const Bytes& bytes) const {
    const auto at = static_cast<uint32_t>(i) % kRoundedK;
    uint8_t* const p = blocks_ + static_cast<uint32_t>(i) / kRoundedK * block_bytes_ +
                       ((at / 16) ^ (row_ & 7)) * 16 + at % 16;
    store_bytes<kV>(p, bytes.high);
    store_bytes<kV>(p + height_ * kRoundedK, bytes.low);
  }
  template <int kV>
  __device__ void store(int64_t i, const float* x) const {
    put<kV>(i, bytes<kV>(x));
  }

 private:
  bool none_;
  num::Exact16Factors by_;
  int height_, row_;
  uint32_t block_bytes_;  // a tile of rows has less than 2^32
  uint8_t* blocks_;

  // Byte kByte of each integer.
  template <int kByte, int kV>
  __device__ static uint32_t gather(const uint32_t* from) {
    constexpr unsigned kPair = kByte | (4 + kByte) << 4;
    if constexpr (kV == 1) return from[0] >> 8 * kByte;
    if constexpr (kV == 2) return __byte_perm(from[0], from[1], kPair);
    if constexpr (kV == 4)
      return __byte_perm(__byte_perm(from[0], from[1], kPair), __byte_perm(from[2], from[3], kPair), 0x5410);
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
