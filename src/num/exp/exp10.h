// exp10 of binary32, correctly rounded for every input (spec/functions.md functions.6; shown by
// `invar_prove exp10`, docs/evidence/functions.md).
#pragma once

#include "num/exp/exp2.h"

namespace invar::num::INVAR_ISA_NS {

// 10^x = 2^(n + r), n + r = x log2(10), |r| <= 1/2.
INVAR_INLINE F exp10_wide(F x) {
  D d = to_double(clamp(x, -46.0f, 39.0f));
  D round = set1_d(kRound), log2_10 = set1_d(0x1.a934f0979a371p+1);
  D t = fma(d, log2_10, round);
  D r = fma(d, log2_10, sub(round, t));
  r = fma(d, set1_d(0x1.7f2495fb7fa6dp-53), r);
  return to_float(scale_by_low_bits(exp2_fraction(r), t));
}

INVAR_INLINE F exp10(F x) {
  if constexpr (kTable == 1) return exp10_wide(x);
  F t = fma(x, set1(0x1.a934fp+1f), set1(kStep)), m = sub(t, set1(kStep));
  // f + g = x - m log10(2), and their product with log(10) = ln10 + ...
  F minus_low = set1(0x1.ec10cp-27f), exact = fma(m, set1(-0x1.344136p-2f), x), f = fma(m, minus_low, exact);
  F g = fma(m, minus_low, sub(exact, f)), ln10 = set1(0x1.26bb1cp+1f), r = mul(f, ln10);
  F low = fma(f, set1(-0x1.12aabap-25f), fma(g, ln10, rest_of(t)));
  return round_or_recompute<exp10_wide>(power_fast(t, r, add(fma(f, ln10, neg(r)), low)), x, 37.9f, -46.0f);
}

}  // namespace invar::num::INVAR_ISA_NS
