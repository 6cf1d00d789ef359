// The scalar truth of the exact16 profile: spec/exact16.md exact16.1 - exact16.5.
#pragma once
#include <cmath>

#include "num/exact16/quantize.h"
#include "num/reference.h"

namespace invar::num::reference {

// exact16.1 of a row with elements at(0) ... at(k - 1).
template <class At>
static int32_t exact16_row_scale(int64_t k, At at) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < k; ++i) {
    const uint32_t magnitude = __builtin_bit_cast(uint32_t, static_cast<float>(at(i))) & 0x7fffffff;
    if (magnitude > largest) largest = magnitude;
  }
  return num::exact16_scale(largest);
}

// exact16.2, for -1023 <= e <= 1022 and a result below 2^51. The product is exact, and the sum
// rounds it to the nearest integer, ties to even: nearbyint and ldexp, of which attention's cases
// make a billion, without the calls.
static inline int64_t exact16_integer(float x, int32_t e) {
  constexpr double kRound = 0x1.8p52;
  return static_cast<int64_t>((static_cast<double>(x) * exact16_wide_power(-e) + kRound) - kRound);
}

// exact16.4 and exact16.5: of the exact sum of two rows with these scales.
static inline float exact16_result(int64_t sum, int32_t ea, int32_t eb) {
  if (ea == kExact16NoIntegers || eb == kExact16NoIntegers) return num::f32_from_bits(0x7fc00000);
  const double y = std::ldexp(static_cast<double>(static_cast<float>(sum)), ea + eb);
  if (std::fabs(y) < 0x1p-126) return std::signbit(y) ? -0.0f : 0.0f;
  return static_cast<float>(y);
}

// The product of two rows of k elements.
template <class Left, class Right>
static float exact16_product(int64_t k, Left left, Right right) {
  const int32_t ea = exact16_row_scale(k, left), eb = exact16_row_scale(k, right);
  const bool integers = ea != kExact16NoIntegers && eb != kExact16NoIntegers;
  int64_t sum = 0;
  for (int64_t i = 0; integers && i < k; ++i)
    sum += exact16_integer(left(i), ea) * exact16_integer(right(i), eb);
  return exact16_result(sum, ea, eb);
}

}  // namespace invar::num::reference
