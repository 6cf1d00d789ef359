// exp10 of binary32, correctly rounded for every input (spec/functions.md functions.6; shown by `invar_prove
// exp10`, docs/evidence/functions.md): like exp.h, in binary64 with one final rounding.
//
// 10^x = 2^(n + r), n + r = x log2(10), |r| <= 1/2.
#pragma once

#include "num/exp/exp2.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F exp10(F x) {
  D d = to_double(clamp(x, -46.0f, 39.0f));
  D round = set1_d(kRound), log2_10 = set1_d(0x1.a934f0979a371p+1);
  D t = fma(d, log2_10, round);
  D r = fma(d, log2_10, sub(round, t));
  r = fma(d, set1_d(0x1.7f2495fb7fa6dp-53), r);
  return to_float(scale_by_low_bits(exp2_fraction(r), t));
}

}  // namespace invar::num::INVAR_ISA_NS
