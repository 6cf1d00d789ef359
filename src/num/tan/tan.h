// tan of binary32 (spec/functions.md functions.30), correctly rounded for every input (`invar_prove
// tan`; docs/evidence/functions.md). Constants:
// tools/prove/coefficients/trigonometric_coefficients.py tan.
//
// |x| = n pi/2 + r, |r| <= pi/4 (reduced as in sincos.h): tan(r) = r N(r^2) / D(r^2) (relative
// error 2^-60.3), or -D / (r N) where n is odd; one division.
#pragma once

#include "num/lane/elementary.h"
#include "num/sincos/payne_hanek.h"

namespace invar::num::INVAR_ISA_NS {

// tan r for |r| <= pi/4 or, where the lowest bit of t is set, -1 / tan r.
INVAR_INLINE F tan_of_reduced(D r, D t) {
  D z = mul(r, r);
  D p = mul(r, horner(z, 1.0, -0x1.1127cf6e2e01bp-3, 0x1.c0cc87724e6dbp-9, -0x1.2b7027373eff2p-16));
  D q = horner(z, 1.0, -0x1.dde93d0c6c563p-2, 0x1.a46cf8a80311bp-6, -0x1.46d15e58d108ep-12,
               0x1.0b1c416831380p-21);
  MD odd = lt(flip_if_odd(set1_d(1.0), t), set1_d(0.0));
  return to_float(flip_if_odd(div(select(odd, q, p), select(odd, p, q)), t));
}
INVAR_INTERNAL F tan_huge(F x) {
  Fraction a = huge_fraction(x, 2.0, 0.0, kRound);
  D r = fma(a.f, set1_d(0x1.921fb54442d18p+0), mul(a.f, set1_d(0x1.1a62633145c07p-54)));
  return nan_unless_finite(flip_with(tan_of_reduced(r, a.t), x), x);
}

INVAR_INLINE F tan(F x) {
  I mag = magnitude(x);
  D a = to_double(from_bits(mag));
  D t = fma(a, set1_d(0x1.45f306dc9c883p-1), set1_d(kRound));
  D n = sub(t, set1_d(kRound));
  D r = fma(n, set1_d(-0x1.1a62633145c07p-54), fma(n, set1_d(-0x1.921fb54442d18p+0), a));
  F y = flip_with(tan_of_reduced(r, t), x);
  M huge = gt(mag, set1_i(0x4d800000));
  return any(huge) ? select(huge, tan_huge(x), y) : y;
}

}  // namespace invar::num::INVAR_ISA_NS
