// Codes of weights to the bytes of their 16-bit integers (exact16.2), in registers: of each number
// the operations of its clause (spec/weights.md), then its rounding by the scale of its column.
#pragma once
#include <type_traits>

#include "ops/matmul/cuda/exact16/coded/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A small float whose bits have been moved to those of a binary32 number is 2^-kBias of itself,
// also a subnormal one. kShift: from the highest bits to there; kMask: its bits there.
template <weights::Codes kCodes>
struct SmallFloatBits;
template <>
struct SmallFloatBits<weights::Codes::e4m3> {
  static constexpr int kShift = 4, kBias = 120;
  static constexpr uint32_t kMask = 0x87f00000;
};
template <>
struct SmallFloatBits<weights::Codes::e5m2> {
  static constexpr int kShift = 3, kBias = 112;
  static constexpr uint32_t kMask = 0x8fe00000;
};
template <>
struct SmallFloatBits<weights::Codes::e2m1> {
  static constexpr int kShift = 6, kBias = 126;
  static constexpr uint32_t kMask = 0x81c00000;
};

// Code i of four in the bytes of a word, as a number. Floats of four bits are in the high halves of
// the bytes, integers of four bits in the low ones, with nothing beside them.
template <weights::Codes kCodes>
__device__ inline float code_at(uint32_t word, int i) {
  if constexpr (kCodes == weights::Codes::integers) {
    return __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 | i)) - 8388608.0f;  // 2^23 + q, less 2^23
  } else {
    using Bits = SmallFloatBits<kCodes>;
    const auto highest = static_cast<int32_t>(__byte_perm(word, 0, 0x0444 | i << 12));
    const uint32_t moved = static_cast<uint32_t>(highest >> Bits::kShift) & Bits::kMask;
    return __uint_as_float(moved) * power_of_two(Bits::kBias);
  }
}

template <weights::Rounding kRounding>
__device__ inline void round_pair(float& x, float& y) {
  if constexpr (kRounding == weights::Rounding::bf16) {
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    x = __uint_as_float(both << 16), y = __uint_as_float(both & 0xffff0000u);
  } else if constexpr (kRounding == weights::Rounding::f16) {
    uint16_t low, high;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(low) : "f"(x));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(high) : "f"(y));
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(low));
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(high));
  }
}
// Calls f with the integral constant of a rounding.
template <class Fn>
__host__ __device__ inline void with_rounding(weights::Rounding rounding, Fn f) {
  using enum weights::Rounding;
  if (rounding == none) return f(std::integral_constant<weights::Rounding, none>{});
  if (rounding == bf16) return f(std::integral_constant<weights::Rounding, bf16>{});
  f(std::integral_constant<weights::Rounding, f16>{});
}

// A column: by which its numbers are multiplied to be rounded to integers.
__device__ inline float factor_of(int32_t e) {
  using Tiles = weights::CodeTiles;
  if (e == num::kExact16NoIntegers) return 0;
  return power_of_two(e >= Tiles::kLeastScale ? -e : -e - Tiles::kEnlarged);
}

struct IntegerBytes {
  uint32_t high, low;  // q = 256 h + l; h is signed, l is not
};
template <weights::Codes kCodes, weights::Rounding kRounding>
__device__ inline IntegerBytes integers_of(uint32_t word, float scale, float addend, float factor) {
  // A sum with 3 * 2^22 rounds to an integer, ties to even, and leaves it in the low bits.
  constexpr float kInteger = 0x1.8p23f;
  float x[4];
  uint32_t t[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float q = code_at<kCodes>(word, i);
    x[i] = kCodes == weights::Codes::integers ? __fmaf_rn(q, scale, addend) : __fmul_rn(q, scale);
  }
  round_pair<kRounding>(x[0], x[1]), round_pair<kRounding>(x[2], x[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) t[i] = __float_as_uint(__fmaf_rn(x[i], factor, kInteger));
  const uint32_t a = __byte_perm(t[0], t[1], 0x5140), b = __byte_perm(t[2], t[3], 0x5140);
  return {__byte_perm(a, b, 0x7632), __byte_perm(a, b, 0x5410)};
}

// The words of both columns of a thread in 16 numbers, from the word or the two of them in a tile.
template <weights::Codes kCodes, int kBits>
__device__ inline void words_of(uint32_t (&to)[2], uint32_t first, uint32_t second) {
  if constexpr (kBits == 8) {
    to[0] = first, to[1] = second;
  } else if constexpr (kCodes == weights::Codes::integers) {
    to[0] = first & 0x0f0f0f0f, to[1] = first >> 4 & 0x0f0f0f0f;
  } else {
    to[0] = first << 4, to[1] = first;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
