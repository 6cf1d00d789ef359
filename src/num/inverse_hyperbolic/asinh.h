// asinh and acosh of binary32, correctly rounded for every input (spec/functions.md; shown by
// `invar_prove asinh`, `invar_prove acosh`, docs/evidence/functions.md).
//
// Both are the log of u = sinh y + cosh y >= 1. With u = 2^e (1 + r) and s = (u - 2^e) / (u + 2^e)
// it is e log 2 + 2 atanh(s). For e = 0, where u - 1 would cancel, s = tanh(y/2) = sinh y / (1 +
// cosh y).
#pragma once

#include "num/log/core.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE D log_of_sum(D sinh, D cosh) {
  D u = add(sinh, cosh), one = set1_d(1.0);
  L offset = exponent_offset(u);
  D e = exponent_of(offset), power = from_bits(bit_and(offset, set1_l(kExponentField)));
  MD e_is_0 = lt(e, set1_d(0.5));
  D s = div(select(e_is_0, mul(sinh, set1_d(-1.0)), sub(power, u)),  // -s
            select(e_is_0, add(one, cosh), add(power, u)));
  D z = mul(s, s);
  D l = fma(mul(s, z), horner(z, kMinusP), mul(s, set1_d(-2.0)));
  return fma(e, set1_d(0x1.62e42fefa39efp-1), fma(e, set1_d(0x1.abc9e3b39803fp-56), l));
}

INVAR_INLINE F asinh(F x) {
  F a = abs(x);
  D d = to_double(a);
  F special = select(lt(a, set1(__builtin_inff())), zero(), a);  // infinity, NaN
  special = patch_hard_cases(special, a,
                             {{0x4bdd65a5, 0x418f034b}, {0x655890d3, 0x4254d1f9}, {0x6eb1a8ec, 0x42845a89}});
  return flip_with(unless(special, to_float(log_of_sum(d, sqrt(fma(d, d, set1_d(1.0)))))), x);
}

// cosh y = x, sinh y = sqrt(x^2 - 1), where x^2 - 1 is exact below 8.
INVAR_INLINE F acosh(F x) {
  D d = to_double(x);
  F special = select(lt(x, set1(1.0f)), set1(__builtin_nanf("")), zero());
  special = patch_hard_cases(select(lt(x, set1(__builtin_inff())), special, x), x,
                             {{0x655890d3, 0x4254d1f9}, {0x6eb1a8ec, 0x42845a89}});
  return unless(special, to_float(log_of_sum(sqrt(fma(d, d, set1_d(-1.0))), d)));
}

}  // namespace invar::num::INVAR_ISA_NS
