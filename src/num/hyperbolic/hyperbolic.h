// sinh, cosh and tanh of binary32, correctly rounded for every input (spec/functions.md functions.7; shown by
// `invar_prove sinh` and so on, docs/evidence/functions.md), in binary64 with one final rounding.
//
// With x = n ln2 + r, S = sinh r, C = cosh r, g = cosh(n ln2) = (2^n + 2^-n)/2 and h = sinh(n ln2) = (2^n - 2^-n)/2:
// sinh x = g S + h C, cosh x = g C + h S. Where n = 0 sinh x is S alone, and its relative error stays small.
#pragma once

#include "num/exp/parts.h"

namespace invar::num::INVAR_ISA_NS {

struct SinhCosh {
  D sinh, cosh;
};

INVAR_INLINE SinhCosh sinh_cosh(D x) {
  ExpParts p = exp_parts(x);
  D half = set1_d(0.5);
  D up = scale_by_low_bits(half, p.t), down = from_bits(sub(bits(half), shift_left<52>(bits(p.t))));
  D g = add(up, down), h = sub(up, down);
  D s = mul(p.r, fma(p.z, p.s, set1_d(1.0))), c = fma(p.z, p.c, set1_d(1.0));
  return {fma(h, c, mul(g, s)), fma(g, c, mul(h, s))};
}

// Beyond the limits the result is infinity (sinh, cosh) or 1 (tanh) anyhow.
INVAR_INLINE F sinh(F x) {
  return or_sign(to_float(sinh_cosh(to_double(clamp(x, -91.0f, 91.0f))).sinh), x);  // sinh(-0) = -0
}
INVAR_INLINE F cosh(F x) {
  return to_float(sinh_cosh(to_double(clamp(x, -91.0f, 91.0f))).cosh);
}
INVAR_INLINE F tanh(F x) {
  SinhCosh v = sinh_cosh(to_double(clamp(x, -10.0f, 10.0f)));
  return or_sign(to_float(div(v.sinh, v.cosh)), x);
}

}  // namespace invar::num::INVAR_ISA_NS
