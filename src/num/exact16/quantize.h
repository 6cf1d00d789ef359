// The steps for one row and for one result of the exact16 profile (spec/exact16.md).
#pragma once

#include <cstdint>

#include "num/inline.h"

namespace invar::num {

inline constexpr int32_t kExact16Largest = 32639;       // exact16.2
inline constexpr int64_t kExact16LongestRow = 1 << 22;  // exact16.3
inline constexpr int32_t kExact16NoIntegers = 1 << 20;  // the scale of a row with a NaN or an infinity

// exact16.1: the scale e of a row from the bits of its largest |x|, which order as the values do.
INVAR_INLINE int32_t exact16_scale(uint32_t largest) {
  if (largest >= 0x7f800000) return kExact16NoIntegers;
  if (largest == 0) return 0;
  const auto wide = static_cast<double>(__builtin_bit_cast(float, largest));  // exact, never subnormal
  const auto bits = __builtin_bit_cast(uint64_t, wide);
  const int32_t p = static_cast<int32_t>(bits >> 52) - 1022;
  // The 24 bits of the significand, times 2^-9, round to more than 32639 from 32639.5 on.
  const auto significand = static_cast<int32_t>((bits >> 29) & 0x7fffff) | 0x800000;
  return significand < kExact16Largest * 512 + 256 ? p - 15 : p - 14;
}

// The scale of a row of scales, whose integers have two more bits (matmul_nbits_exact16.2), from
// the scale of exact16.1.
INVAR_INLINE int32_t exact16_scale_of_scales(int32_t e) {
  return e == kExact16NoIntegers ? e : e - 2;
}

INVAR_INLINE float exact16_power(int32_t e) {  // 2^e for -126 <= e <= 127
  return __builtin_bit_cast(float, static_cast<uint32_t>(e + 127) << 23);
}
INVAR_INLINE double exact16_wide_power(int32_t e) {  // 2^e for -1022 <= e <= 1023
  return __builtin_bit_cast(double, static_cast<uint64_t>(e + 1023) << 52);
}
// 2^-e as two factors that f32 holds: the first only enlarges, so products with it are exact.
struct Exact16Factors {
  float first, second;
};
INVAR_INLINE Exact16Factors exact16_factors(int32_t e) {
  const int32_t first = e < -100 ? 64 : 0;
  return {exact16_power(first), exact16_power(-e - first)};
}

}  // namespace invar::num
