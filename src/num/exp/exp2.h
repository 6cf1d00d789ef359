// exp2 of binary32, correctly rounded for every input (spec/functions.md functions.6; shown by
// `invar_prove exp2`, docs/evidence/functions.md).
#pragma once

#include "num/exp/fast_path.h"

namespace invar::num::INVAR_ISA_NS {

// 2^r for |r| <= 1/2, relative error of the polynomial 2^-52.5. Constants:
// tools/prove/coefficients/exp_family_coefficients.py. Odd and even terms are summed apart, which
// halves the chain of dependent operations.
INVAR_INLINE D exp2_fraction(D r) {
  D z = mul(r, r);
  D o = horner(z, 0x1.62e42fefa39efp-1, 0x1.c6b08d704a2c0p-5, 0x1.5d87fe782d10ap-10, 0x1.ffcbfefc186a3p-17,
               0x1.b51f17cfe3609p-24, 0x1.f300fb9224a4fp-32);
  D e = horner(z, 0x1.ebfbdff82c5aep-3, 0x1.3b2ab6fb9e2c0p-7, 0x1.4309131579c81p-13, 0x1.62bfb664b5e48p-20,
               0x1.e6371837d8c13p-28);
  return fma(fma(e, r, o), r, set1_d(1.0));
}

// x = n + r, |r| <= 1/2, both exact:  2^x = 2^n (1 + r A(r)).
INVAR_INLINE F exp2_wide(F x) {
  // Beyond these the result is 0 or infinity anyhow, and 2^n stays a normal binary64 number.
  D d = to_double(clamp(x, -151.0f, 129.0f));
  D t = add(d, set1_d(kRound));
  D r = sub(d, sub(t, set1_d(kRound)));
  return patch_hard_cases(to_float(scale_by_low_bits(exp2_fraction(r), t)), x,
                          {{0x3b429d37, 0x3f804385}, {0xbcf3a937, 0x3f7ac6b1}});
}

INVAR_INLINE F exp2(F x) {
  if constexpr (kTable == 1) return exp2_wide(x);
  F t = add(x, set1(kStep)), f = sub(x, sub(t, set1(kStep)));  // exact
  F ln2 = set1(0x1.62e43p-1f), r = mul(f, ln2);
  F low = add(fma(f, ln2, neg(r)), fma(f, set1(-0x1.05c61p-29f), rest_of(t)));
  return round_or_recompute<exp2_wide>(power_fast(t, r, low), x, 126.0f, -150.0f);
}

}  // namespace invar::num::INVAR_ISA_NS
