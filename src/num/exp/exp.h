// exp of binary32, correctly rounded for every input (spec/functions.md functions.2; shown by `invar_prove
// exp`, docs/evidence/functions.md). One branch-free sequence of binary64 operations and one final rounding, which
// also makes overflow and gradual underflow right. The store rule is not applied here.
//
// x = n ln2 + r, |r| <= ln2/2:  exp(x) = 2^n (1 + r + r^2/2 + r^3 q(r)).  Constants:
// tools/prove/exp_coefficients.py 12 (relative error of the polynomial 2^-59.8).
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F exp(F x) {
  // Beyond these the result is 0 or infinity anyhow, and 2^n stays a normal binary64 number.
  D d = clamp(to_double(x), -110.0, 90.0);
  // Adding 1.5 * 2^52 rounds to an integer n and leaves it in the low bits of t.
  D magic = set1_d(0x1.8p52);
  D t = fma(d, set1_d(0x1.71547652b82fep+0), magic);
  D n = sub(t, magic);
  D r = fma(n, set1_d(-0x1.62e42fefa39efp-1), d);  // exact: a multiple of 2^-53 below 1
  r = fma(n, set1_d(-0x1.abc9e3b39803fp-56), r);
  D p = set1_d(0x1.1f66df7fca49fp-29);
  p = fma(p, r, set1_d(0x1.af38a9b0ec855p-26));
  p = fma(p, r, set1_d(0x1.27e4e1f48534fp-22));
  p = fma(p, r, set1_d(0x1.71de0dae63bb3p-19));
  p = fma(p, r, set1_d(0x1.a01a01a47b054p-16));
  p = fma(p, r, set1_d(0x1.a01a01a7c41d5p-13));
  p = fma(p, r, set1_d(0x1.6c16c16c167e1p-10));
  p = fma(p, r, set1_d(0x1.11111111109b3p-7));
  p = fma(p, r, set1_d(0x1.5555555555555p-5));
  p = fma(p, r, set1_d(0x1.5555555555556p-3));
  p = fma(p, r, set1_d(0.5));
  p = fma(p, r, set1_d(1.0));
  p = fma(p, r, set1_d(1.0));
  // A NaN widened from binary32 has zeros in its low bits and stays NaN here.
  return to_float(scale_by_low_bits(p, t));
}

}  // namespace invar::num::INVAR_ISA_NS
