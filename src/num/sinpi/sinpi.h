// sinpi(x) = sin(pi x) and cospi(x) = cos(pi x) of binary32 (spec/functions.md functions.31),
// correctly rounded for every input (`invar_prove sinpi`, `invar_prove cospi`;
// docs/evidence/functions.md). Constants: tools/prove/coefficients/trigonometric_coefficients.py
// sinpi.
//
// |x| = n + r, |r| <= 1/2, or n + 1/2 + r for the cosine: r is exact (where |x| < 2^-28 makes it
// inexact, the cosine is 1). sin(pi r) = r pi + r (pi_low + z P(z)), z = r^2 (relative error
// 2^-60.3).
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

// From 2^24 all numbers are even integers: like 2^24.
INVAR_INLINE D below_even(F x) {
  I mag = magnitude(x), even = set1_i(0x4b800000);
  return to_double(from_bits(select(gt(mag, even), even, mag)));
}
// A zero comes out as +0; NaN where x is infinity or NaN.
INVAR_INLINE F sinpi_of_reduced(D r, F x) {
  D z = mul(r, r);
  D p = horner(z, 0x1.1a62633145c07p-53, -0x1.4abbce625be52p+2, 0x1.466bc6775aa4bp+1, -0x1.32d2cce6264e7p-1,
               0x1.50783484a29e6p-4, -0x1.e3074da2a0f9cp-8, 0x1.e8f34e79b021bp-12, -0x1.6f7720586f49bp-16,
               0x1.9cd483d1ca6d8p-21);
  return add(to_float(fma(r, set1_d(0x1.921fb54442d18p+1), mul(r, p))), sub(x, x));
}

INVAR_INLINE F sinpi(F x) {
  D a = below_even(x);
  D t = add(a, set1_d(kRound));
  D r = sub(a, sub(t, set1_d(kRound)));
  return flip_with(sinpi_of_reduced(flip_if_odd(r, t), x), x);
}

INVAR_INLINE F cospi(F x) {
  D a = below_even(x);
  D t = add(sub(a, set1_d(0.5)), set1_d(kRoundOdd));
  D r = sub(a, add(sub(t, set1_d(kRoundOdd)), set1_d(0.5)));
  return sinpi_of_reduced(flip_if_odd(r, t), x);
}

}  // namespace invar::num::INVAR_ISA_NS
