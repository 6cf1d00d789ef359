// sin and cos of binary32 (spec/functions.md functions.3), correctly rounded for every input
// (`invar_prove sin`, `invar_prove cos`; docs/evidence/functions.md). Constants:
// tools/prove/coefficients/trigonometric_coefficients.py sin.
//
// |x| = n pi + r, |r| <= pi/2, gives sin |x| = (-1)^n sin(r); |x| = (n + 1/2) pi + r gives cos x =
// (-1)^(n+1) sin(r): one polynomial (relative error 2^-61.3) and no choice between two. pi in two
// parts: the product with the first is exact in the fma and so is the difference, a multiple of
// 2^-52 below 2. What the second part of pi lacks, n 2^-106, weighs nothing below kFast. Beyond it
// another reduction (payne_hanek.h), taken only where a lane needs it.
#pragma once

#include "num/lane/elementary.h"
#include "num/sincos/payne_hanek.h"

namespace invar::num::INVAR_ISA_NS {

constexpr int32_t kFast = 0x4d800000;  // 2^28

INVAR_INLINE D less_pi_times(D a, D n) {
  return fma(n, set1_d(-0x1.1a62633145c07p-53), fma(n, set1_d(-0x1.921fb54442d18p+1), a));
}
// sin r for |r| <= pi/2.
INVAR_INLINE F sin_of_reduced(D r) {
  D z = mul(r, r);
  D p = horner(z, -0x1.5555555555555p-3, 0x1.11111111110cbp-7, -0x1.a01a01a01516dp-13, 0x1.71de3a52c0c11p-19,
               -0x1.ae6454e45bde2p-26, 0x1.6123d13499597p-33, -0x1.ae44a19cf36edp-41, 0x1.8851128d67b6cp-49);
  return to_float(fma(mul(z, p), r, r));
}

INVAR_INLINE D pi_times(D f) {
  return fma(f, set1_d(0x1.921fb54442d18p+1), mul(f, set1_d(0x1.1a62633145c07p-53)));
}
INVAR_INTERNAL F sin_huge(F x) {
  Fraction a = huge_fraction(x, 1.0, 0.0, kRound);
  F y = patch_hard_cases(sin_of_reduced(flip_if_odd(pi_times(a.f), a.t)), from_bits(magnitude(x)),
                         {{0x55cafb2a, 0xbf7e7a17}});
  return nan_unless_finite(flip_with(y, x), x);
}
INVAR_INTERNAL F cos_huge(F x) {
  Fraction a = huge_fraction(x, 1.0, 0.5, kRoundOdd);
  F y = patch_hard_cases(sin_of_reduced(flip_if_odd(pi_times(a.f), a.t)), from_bits(magnitude(x)),
                         {{0x5f18b878, 0x3f7f14bb}, {0x6115cb11, 0x3f78142f}});
  return nan_unless_finite(y, x);
}

INVAR_INLINE F sin(F x) {
  I mag = magnitude(x);
  D a = to_double(from_bits(mag));
  D t = fma(a, set1_d(0x1.45f306dc9c883p-2), set1_d(kRound));
  D r = less_pi_times(a, sub(t, set1_d(kRound)));
  F y = patch_hard_cases(sin_of_reduced(flip_if_odd(r, t)), from_bits(mag), {{0x46199998, 0xbeb1fa5d}});
  y = flip_with(y, x);
  M huge = gt(mag, set1_i(kFast));
  return any(huge) ? select(huge, sin_huge(x), y) : y;
}

INVAR_INLINE F cos(F x) {
  I mag = magnitude(x);
  D a = to_double(from_bits(mag));
  D t = add(fma(a, set1_d(0x1.45f306dc9c883p-2), set1_d(-0.5)), set1_d(kRoundOdd));
  D r = less_pi_times(a, add(sub(t, set1_d(kRoundOdd)), set1_d(0.5)));
  F y = sin_of_reduced(flip_if_odd(r, t));
  M huge = gt(mag, set1_i(kFast));
  return any(huge) ? select(huge, cos_huge(x), y) : y;
}

}  // namespace invar::num::INVAR_ISA_NS
