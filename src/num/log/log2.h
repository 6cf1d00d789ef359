// log2 of binary32, correctly rounded for every input (spec/functions.md; shown by `invar_prove
// log2`, docs/evidence/functions.md).
#pragma once

#include "num/log/core.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F log2(F x) {
  // core.h times log2(e); the product with r in two words, as r alone is no longer the head of the
  // sum.
  constexpr double kMinusP2[] = {-0x1.ec709dc3a0401p-1, -0x1.2776c50ef68f3p-1, -0x1.a61762b534b6ep-2,
                                 -0x1.484b091a92bb1p-2, -0x1.0c9e91c7d1b10p-2, -0x1.c4ff2c46480e7p-3,
                                 -0x1.afde0dd07fe15p-3};
  L offset = exponent_offset(to_double(x));
  D r = sub(significand_of(offset), set1_d(1.0));
  D s = minus_s(r), z = mul(s, s);
  D bracket = fma(horner(z, kMinusP2), z, mul(r, set1_d(0x1.71547652b82fep+0)));
  D low = fma(s, bracket, mul(r, set1_d(0x1.777d0ffda0d24p-56)));
  D l = fma(r, set1_d(0x1.71547652b82fep+0), low);
  return unless(outside_domain(x, 0.0f), to_float(add(exponent_of(offset), l)));
}

}  // namespace invar::num::INVAR_ISA_NS
