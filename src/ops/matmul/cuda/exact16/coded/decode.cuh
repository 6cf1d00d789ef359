// Codes of weights to the bytes of their 16-bit integers (exact16.2), in registers: of each number
// the operations of its clause (spec/weights.md), then its rounding by the scale of its column.
#pragma once
#include <type_traits>

#include "ops/matmul/cuda/exact16/coded/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Halves of binary16 that hold codes exactly: a code is 2^k times its half. Integers are subnormal
// halves, and e2m1 has its three bits on the place of the highest ones of a half.
template <weights::Codes kCodes, int kBits>
__device__ constexpr float times_of_half(int column) {
  if (kCodes == weights::Codes::integers) return kBits == 4 && column == 1 ? 0x1p20f : 0x1p24f;
  return kCodes == weights::Codes::e2m1 ? 0x1p14f : 1.0f;
}

__device__ inline uint32_t bits_of_both(uint32_t x, uint32_t mask, uint32_t y, uint32_t mask_of_y) {
  return (x & mask) | (y & mask_of_y);
}
#if __CUDA_ARCH__ >= 890
__device__ inline uint32_t halves_of_e4m3(uint32_t two) {  // in the low half of a word
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(two)));
  return halves;
}
#else
__device__ inline uint32_t halves_of_e4m3(uint32_t) {
  return 0;  // no kernel of older GPUs reads codes
}
#endif
__device__ inline float low_half(uint32_t halves) {
  float x;
  asm("{\n.reg .b16 h;\nmov.b32 {h, _}, %1;\ncvt.f32.f16 %0, h;\n}" : "=f"(x) : "r"(halves));
  return x;
}
__device__ inline float high_half(uint32_t halves) {
  float x;
  asm("{\n.reg .b16 h;\nmov.b32 {_, h}, %1;\ncvt.f32.f16 %0, h;\n}" : "=f"(x) : "r"(halves));
  return x;
}

// Four codes of a column of a thread (of two), as halves in binary32. A word of codes of 4 bits has
// those of both columns, the second one's in the high halves of its bytes.
template <weights::Codes kCodes, int kBits>
__device__ inline void codes_of(float (&x)[4], uint32_t word, int column) {
  uint32_t a, b;  // halves of codes 0 and 2, and of 1 and 3
  if constexpr (kCodes == weights::Codes::e4m3) {
    a = halves_of_e4m3(word), b = halves_of_e4m3(word >> 16);
    x[0] = low_half(a), x[1] = high_half(a), x[2] = low_half(b), x[3] = high_half(b);
    return;
  } else if constexpr (kCodes == weights::Codes::integers) {
    const uint32_t mask = kBits == 8 ? 0x00ff00ff : 0x000f000f << 4 * column;
    a = word & mask, b = word >> 8 & mask;
  } else if constexpr (kCodes == weights::Codes::e5m2) {
    a = word << 8 & 0xff00ff00, b = word & 0xff00ff00;
  } else {
    const int up = column == 0 ? 4 : 0;  // to the high halves of bytes, and three bits down again
    a = bits_of_both(word << (up + 5), 0x0e000e00, word << (up + 8), 0x80008000);
    b = bits_of_both(up ? word << 1 : word >> 3, 0x0e000e00, word << up, 0x80008000);
  }
  x[0] = low_half(a), x[1] = low_half(b), x[2] = high_half(a), x[3] = high_half(b);
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
  return power_of_two(-e - Tiles::enlarged_by(e));
}

struct IntegerBytes {
  uint32_t high, low;  // q = 256 h + l; h is signed, l is not
};
// Of four codes of a column of a thread; `scale` is that of halves.
template <weights::Codes kCodes, int kBits, weights::Rounding kRounding>
__device__ inline IntegerBytes integers_of(uint32_t word, int column, float scale, float addend,
                                           float factor) {
  // A sum with 3 * 2^22 rounds to an integer, ties to even, and leaves it in the low bits.
  constexpr float kInteger = 0x1.8p23f;
  float x[4];
  uint32_t t[4];
  codes_of<kCodes, kBits>(x, word, column);
#pragma unroll
  for (float& one : x)
    one = kCodes == weights::Codes::integers ? __fmaf_rn(one, scale, addend) : __fmul_rn(one, scale);
  round_pair<kRounding>(x[0], x[1]), round_pair<kRounding>(x[2], x[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) t[i] = __float_as_uint(__fmaf_rn(x[i], factor, kInteger));
  const uint32_t a = __byte_perm(t[0], t[1], 0x5140), b = __byte_perm(t[2], t[3], 0x5140);
  return {__byte_perm(a, b, 0x7632), __byte_perm(a, b, 0x5410)};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
