// expm1 of binary32, correctly rounded for every input (spec/functions.md functions.6; shown by
// `invar_prove expm1`, docs/evidence/functions.md), in binary64 with one final rounding.
//
// e^x - 1 = 2^n (e^r - 1) + (2^n - 1). Where n = 0 the second term is 0 and nothing is lost;
// elsewhere it is at least a third of the result.
#pragma once

#include "num/exp/reduced_sinh_cosh.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F expm1(F x) {
  // Beyond these the result is -1 or infinity anyhow, and 2^n stays a normal binary64 number.
  ReducedSinhCosh p = reduced_sinh_cosh(to_double(clamp(x, -110.0f, 90.0f)));
  D m = fma(p.z, fma(p.r, p.s, p.c), p.r);
  D one = set1_d(1.0), scale = scale_by_low_bits(one, p.t);
  return or_sign(to_float(fma(scale, m, sub(scale, one))), x);  // expm1(-0) = -0
}

}  // namespace invar::num::INVAR_ISA_NS
