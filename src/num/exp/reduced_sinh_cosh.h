// sinh and cosh of the reduced argument r, x = n ln2 + r, |r| <= ln2/2: the odd and the even part
// of e^r. expm1, erfc and the hyperbolic functions are made of them.
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

// n in the low bits of t (n + kRound); z = r^2; sinh r = r + r z s, cosh r = 1 + z c, relative
// error of the polynomials 2^-61 and 2^-57. Constants:
// tools/prove/coefficients/exp_family_coefficients.py.
struct ReducedSinhCosh {
  D t, r, z, s, c;
};

INVAR_INLINE ReducedSinhCosh reduced_sinh_cosh(D x) {
  D t = fma(x, set1_d(0x1.71547652b82fep+0), set1_d(kRound));
  D n = sub(t, set1_d(kRound));
  D r = fma(n, set1_d(-0x1.62e42fefa39efp-1), x);  // exact: a multiple of 2^-53 below 1
  r = fma(n, set1_d(-0x1.abc9e3b39803fp-56), r);
  D z = mul(r, r);
  D s = horner(z, 0x1.5555555555557p-3, 0x1.111111110fe85p-7, 0x1.a01a01ad5345bp-13, 0x1.71ddfdb18c8dep-19,
               0x1.af570527b7f59p-26);
  D c = horner(z, 0x1.0000000000005p-1, 0x1.5555555551c91p-5, 0x1.6c16c180a2e32p-10, 0x1.a019a1fcb107ep-16,
               0x1.28a73c653f3b3p-22);
  return {t, r, z, s, c};
}

}  // namespace invar::num::INVAR_ISA_NS
