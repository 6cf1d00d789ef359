// exp of binary64: the sequence of spec/functions.md functions.40, equal bits on every processor.
//
// Error, in units of u = 2^-53, where y = 1 + v is about exp(r + c), |r| <= 0.3466: what follows
// the term of r^14 is below 2^-63; q is below 0.068 and has r r, p and their product rounded, 0.23
// u; q + c 0.07 u; v, below 1/2, 0.25 u; c r is left out, 0.06 u; n B is rounded, nothing. y itself
// is rounded by u where it is at least 1 (1.61 u = 0.81 units in the last place), else by u / 2
// (there q < 0.054: 1.04 units). A subnormal result is rounded once more.
#pragma once
#include "num/binary64.h"

namespace invar::num::INVAR_ISA_NS {

// ln 2 in two parts; the first has 42 bits, so that 11 bits times it are exact.
constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;

INVAR_INLINE double power_of_two(int n) {
  return f64_from_bits(static_cast<uint64_t>(n + 1023) << 52);
}

INVAR_INLINE double exp64(double x) {
  if (x != x) return x;
  x = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  const double n = __builtin_rint(x * 0x1.71547652b82fep+0);
  const double high = __builtin_fma(n, -kLn2High, x), low = n * kLn2Low;
  const double r = high - low, c = (high - r) - low;
  double p = 1.0 / 87178291200.0;  // 1 / 14!
  p = __builtin_fma(p, r, 1.0 / 6227020800.0);
  p = __builtin_fma(p, r, 1.0 / 479001600.0);
  p = __builtin_fma(p, r, 1.0 / 39916800.0);
  p = __builtin_fma(p, r, 1.0 / 3628800.0);
  p = __builtin_fma(p, r, 1.0 / 362880.0);
  p = __builtin_fma(p, r, 1.0 / 40320.0);
  p = __builtin_fma(p, r, 1.0 / 5040.0);
  p = __builtin_fma(p, r, 1.0 / 720.0);
  p = __builtin_fma(p, r, 1.0 / 120.0);
  p = __builtin_fma(p, r, 1.0 / 24.0);
  p = __builtin_fma(p, r, 1.0 / 6.0);
  p = __builtin_fma(p, r, 0.5);
  const double q = (r * r) * p, v = r + (q + c), y = 1.0 + v;
  const int whole = static_cast<int>(n), half = whole >> 1;
  return (y * power_of_two(half)) * power_of_two(whole - half);
}

}  // namespace invar::num::INVAR_ISA_NS
