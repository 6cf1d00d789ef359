// 1/sqrt(x) of binary32, correctly rounded for every input (spec/functions.md; shown by
// `invar_prove rsqrt`, docs/evidence/functions.md).
//
// y0 = 1 / sqrt(x) in binary32, two roundings: y0 = x^(-1/2) (1 + a), |a| < 2^-22.8. With e = 1 - x
// y0^2, which binary64 has exactly but for its last rounding (y0^2 is exact), x^(-1/2) = y0 (1 -
// e)^(-1/2) = y0 (1 + e/2 + 3/8 e^2 + ...), the rest below 2^-65. Division and square root are done
// in binary32, where they cost a third.
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F rsqrt(F x) {
  F y0 = div(set1(1.0f), sqrt(x));
  D y = to_double(y0);
  D e = fma(to_double(neg(x)), mul(y, y), set1_d(1.0));
  F r = to_float(fma(mul(y, e), fma(e, set1_d(0.375), set1_d(0.5)), y));
  // 0, infinity and NaN: e is NaN, y0 is right; so is its sign at -0 (IEEE 754-2019: rSqrt(-0) is
  // -infinity).
  return select(unordered(r, r), y0, r);
}

}  // namespace invar::num::INVAR_ISA_NS
