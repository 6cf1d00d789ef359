// exp of binary32, correctly rounded for every input (spec/functions.md functions.2; shown by
// `invar_prove exp`, docs/evidence/functions.md). The store rule is not applied here.
#pragma once

#include "num/exp/exp2.h"
#include "num/ff/ff.h"

namespace invar::num::INVAR_ISA_NS {

// One branch-free sequence of binary64 operations and one final rounding, which also makes overflow
// and gradual underflow right: e^x = 2^(n + r), n + r = x log2(e), |r| <= 1/2.
INVAR_INLINE F exp_wide(F x) {
  // Beyond these the result is 0 or infinity anyhow, and 2^n stays a normal binary64 number.
  D d = to_double(clamp(x, -110.0f, 90.0f));
  D round = set1_d(kRound), log2_e = set1_d(0x1.71547652b82fep+0);
  D t = fma(d, log2_e, round);
  D r = fma(d, log2_e, sub(round, t));
  r = fma(d, set1_d(0x1.777d0ffda0d24p-56), r);
  // A NaN widened from binary32 has zeros in its low bits and stays NaN here.
  return to_float(scale_by_low_bits(exp2_fraction(r), t));
}

INVAR_INLINE ScaledSum exp_fast(F x) {
  F t = fma(x, set1(0x1.715476p+0f), set1(kStep)), m = sub(t, set1(kStep));
  F r = fma(m, set1(-0x1.62e43p-1f), x);  // exact: a multiple of 2^-30 below 2^-4
  return power_fast(t, r, fma(m, set1(0x1.05c61p-29f), rest_of(t)));
}
constexpr float kExpNormal = 87.0f, kExpZero = -104.0f;  // a normal result for |x| < 87, 0 below -104
INVAR_INLINE F exp(F x) {
  if constexpr (kTable == 1) return exp_wide(x);
  return round_or_recompute<exp_wide>(exp_fast(x), x, kExpNormal, kExpZero);
}

// The same for x <= 0 or NaN under the store rule (formats.5; a NaN stays some NaN): subnormal
// results are 0, without a rare path. kExpStored is the smallest x whose e^x is not subnormal.
constexpr float kExpStored = -0x1.5d589ep+6f;
INVAR_INLINE F exp_stored_wide(F x) {
  F y = exp_wide(x);
  return select(lt(y, set1(0x1p-126f)), zero(), y);
}
INVAR_INLINE RoundedResult exp_stored_fast(F x) {
  // Every result is normal; NaN is never certain.
  RoundedResult v = round_if_certain(exp_fast(larger(set1(kExpStored), x)));
  return {select(lt(x, set1(kExpStored)), zero(), v.y), v.sure};
}
// Softmax and attention on a GPU are limited by binary32, loads and branches; they use binary64
// where that is fast.
#ifdef __CUDA_ARCH__
constexpr bool kStoredWide = !kFloatFloat;
#else
constexpr bool kStoredWide = kTable == 1;
#endif
INVAR_INLINE F exp_stored(F x) {
  if constexpr (kStoredWide) return exp_stored_wide(x);
  RoundedResult v = exp_stored_fast(x);
  return __builtin_expect(all(v.sure), true) ? v.y : resolve_uncertain<exp_stored_wide>(x, v.y, v.sure);
}

}  // namespace invar::num::INVAR_ISA_NS
