// log of binary64: the sequence of spec/functions.md functions.41, equal bits on every processor.
//
// Error, in units of u = 2^-53: log m = 2 atanh s = f - s (f - t), |s| < 0.1716, |f| < 0.4143, z <
// 0.0295; what follows the term of z^11 is below 2^-65 of it. w = s (f - t) is below 0.0711 in
// magnitude and has errors of s (2 u of itself), of f - t (1.3 u) and its own: 0.31 u; v 0.07 u; f
// - v, below 1/2, 0.25 u. With k = 0 all of them shrink with f. Else the result is 0.3465 or more,
// its unit u / 2 at least: 1.26 units, and half of one for the last sum.
#pragma once
#include "num/exp/binary64.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE double log64(double x) {
  uint64_t u = f64_bits(x);
  if (x != x || u == kInfinity64) return x;
  if (x == 0) return -__builtin_inf();
  if (x < 0) return f64_from_bits(kNan64);
  double k = 0;
  if (u >> 52 == 0) u = f64_bits(x * 0x1p54), k = -54;
  // x = 2^e m, m from sqrt(1/2) to sqrt(2), about.
  const int64_t e = static_cast<int64_t>(u - 0x3fe6a09e00000000) >> 52;
  const double m = f64_from_bits(u - (static_cast<uint64_t>(e) << 52));
  k = k + static_cast<double>(e);
  const double f = m - 1.0, s = f / (2.0 + f), z = s * s;
  double t = 2.0 / 23;
  t = __builtin_fma(t, z, 2.0 / 21);
  t = __builtin_fma(t, z, 2.0 / 19);
  t = __builtin_fma(t, z, 2.0 / 17);
  t = __builtin_fma(t, z, 2.0 / 15);
  t = __builtin_fma(t, z, 2.0 / 13);
  t = __builtin_fma(t, z, 2.0 / 11);
  t = __builtin_fma(t, z, 2.0 / 9);
  t = __builtin_fma(t, z, 2.0 / 7);
  t = __builtin_fma(t, z, 2.0 / 5);
  t = __builtin_fma(t, z, 2.0 / 3);
  t = t * z;
  const double w = s * (f - t), v = __builtin_fma(-k, kLn2Low, w);
  return k * kLn2High + (f - v);
}

}  // namespace invar::num::INVAR_ISA_NS
