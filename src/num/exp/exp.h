// exp of binary32, correctly rounded for every input (spec/functions.md functions.2; shown by `invar_prove
// exp`, docs/evidence/functions.md). One branch-free sequence of binary64 operations and one final rounding, which
// also makes overflow and gradual underflow right. The store rule is not applied here.
//
// e^x = 2^(n + r), n + r = x log2(e), |r| <= 1/2.
#pragma once

#include "num/exp/exp2.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F exp(F x) {
  // Beyond these the result is 0 or infinity anyhow, and 2^n stays a normal binary64 number.
  D d = to_double(clamp(x, -110.0f, 90.0f));
  D round = set1_d(kRound), log2_e = set1_d(0x1.71547652b82fep+0);
  D t = fma(d, log2_e, round);
  D r = fma(d, log2_e, sub(round, t));
  r = fma(d, set1_d(0x1.777d0ffda0d24p-56), r);
  // A NaN widened from binary32 has zeros in its low bits and stays NaN here.
  return to_float(scale_by_low_bits(exp2_fraction(r), t));
}

}  // namespace invar::num::INVAR_ISA_NS
