// Conversions between storage and arithmetic formats, scalar and on integer bits, so that no
// hardware mode (FTZ, alternative half precision) and no instruction's own NaN rule can reach the
// result. spec/formats.md.
#pragma once

#include <cstdint>

#include "num/inline.h"

namespace invar::num {

INVAR_INLINE uint32_t f32_bits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
INVAR_INLINE float f32_from_bits(uint32_t u) {
  return __builtin_bit_cast(float, u);
}

// formats.5, the store rule: any NaN -> 0x7fc00000, a subnormal -> the zero of its sign.
INVAR_INLINE float canonicalize(float x) {
  uint32_t u = f32_bits(x), mag = u & 0x7fffffffu;
  if (mag > 0x7f800000u) return f32_from_bits(0x7fc00000u);
  return f32_from_bits(mag < 0x00800000u ? u & 0x80000000u : u);
}

// formats.2: exact widening. NaN keeps its payload here; stores make it canonical.
INVAR_INLINE float f32_from_bf16(uint16_t h) {
  return f32_from_bits(static_cast<uint32_t>(h) << 16);
}
INVAR_INLINE float f32_from_f16(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, mag = h & 0x7fffu;
  if (mag >= 0x7c00u) return f32_from_bits(sign | 0x7f800000u | (mag & 0x3ffu) << 13);  // infinity, NaN
  if (mag >= 0x0400u) return f32_from_bits(sign | ((mag << 13) + (112u << 23)));  // normal: rebias 15 -> 127
  if (mag == 0) return f32_from_bits(sign);
  int top = 31 - __builtin_clz(mag);  // subnormal: mag * 2^-24, a normal binary32 number
  return f32_from_bits(sign | static_cast<uint32_t>(103 + top) << 23 | ((mag << (23 - top)) & 0x7fffffu));
}

// formats.6: the store rule, then round to nearest, ties to even.
INVAR_INLINE uint16_t bf16_from_f32(float x) {
  uint32_t u = f32_bits(canonicalize(x));
  return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
INVAR_INLINE uint16_t f16_from_f32(float x) {
  uint32_t u = f32_bits(x), sign = u >> 16 & 0x8000u, mag = u & 0x7fffffffu;
  if (mag > 0x7f800000u) return 0x7e00u;
  if (mag >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65520 rounds to infinity
  if (mag >= 0x38800000u) {                                              // >= 2^-14: a normal result
    uint32_t r = mag - (112u << 23);
    return static_cast<uint16_t>(sign | (r + 0xfffu + (r >> 13 & 1u)) >> 13);
  }
  if (mag <= 0x33000000u) return static_cast<uint16_t>(sign);  // <= 2^-25: zero (the tie 2^-25 goes to even)
  uint32_t shift = 126u - (mag >> 23), full = (mag & 0x7fffffu) | 0x800000u;  // a multiple of 2^-24, rounded
  uint32_t kept = full >> shift, rest = full & ((1u << shift) - 1), half = 1u << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1u)))));
}

}  // namespace invar::num
