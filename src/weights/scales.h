// Scales within blocks.
#pragma once

#include <cmath>
#include <cstdint>

#include "num/convert/convert.h"

namespace invar::weights {

// A binary16 number, widened.
inline float half_at(const uint8_t* p) {
  return num::f32_from_f16(static_cast<uint16_t>(p[0] | p[1] << 8));
}

// A float of a sign, so many bits of exponent, and of mantissa.
inline float small_float(unsigned code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, one = 1 << mantissa_bits;
  const int mantissa = static_cast<int>(code) & (one - 1);
  const int exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const float size = exponent
                         ? std::ldexp(static_cast<float>(one + mantissa), exponent - bias - mantissa_bits)
                         : std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return code >> (exponent_bits + mantissa_bits) & 1 ? -size : size;
}
// The types of the OCP: e4m3 has no infinity.
inline float e4m3(unsigned code) {
  return (code & 0x7f) == 0x7f ? NAN : small_float(code, 4, 3);
}
inline float e5m2(unsigned code) {
  return (code & 0x7c) == 0x7c ? NAN : small_float(code, 5, 2);
}
inline float e2m1(unsigned code) {
  return small_float(code, 2, 1);
}

}  // namespace invar::weights
