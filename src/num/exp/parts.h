// What expm1 and the hyperbolic functions share: x = n ln2 + r, |r| <= ln2/2, and the odd and even parts of e^r.
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

// n in the low bits of t (n + 1.5 * 2^52); z = r^2; sinh r = r + r z s, cosh r = 1 + z c, relative error of the
// polynomials 2^-61 and 2^-57. Constants: tools/prove/exp_family_coefficients.py.
struct ExpParts {
  D t, r, z, s, c;
};

INVAR_INLINE ExpParts exp_parts(D x) {
  D magic = set1_d(0x1.8p52);
  D t = fma(x, set1_d(0x1.71547652b82fep+0), magic);
  D n = sub(t, magic);
  D r = fma(n, set1_d(-0x1.62e42fefa39efp-1), x);  // exact: a multiple of 2^-53 below 1
  r = fma(n, set1_d(-0x1.abc9e3b39803fp-56), r);
  D z = mul(r, r);
  D s = set1_d(0x1.af570527b7f59p-26);
  D c = set1_d(0x1.28a73c653f3b3p-22);
  s = fma(s, z, set1_d(0x1.71ddfdb18c8dep-19));
  c = fma(c, z, set1_d(0x1.a019a1fcb107ep-16));
  s = fma(s, z, set1_d(0x1.a01a01ad5345bp-13));
  c = fma(c, z, set1_d(0x1.6c16c180a2e32p-10));
  s = fma(s, z, set1_d(0x1.111111110fe85p-7));
  c = fma(c, z, set1_d(0x1.5555555551c91p-5));
  s = fma(s, z, set1_d(0x1.5555555555557p-3));
  c = fma(c, z, set1_d(0x1.0000000000005p-1));
  return {t, r, z, s, c};
}

// The sign of x on y: y of the other sign must be zero.
INVAR_INLINE F or_sign(F y, F x) {
  return from_bits(bit_or(bits(y), bit_and(bits(x), set1_i(INT32_MIN))));
}

}  // namespace invar::num::INVAR_ISA_NS
