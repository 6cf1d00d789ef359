// erf and erfc of binary32, correctly rounded for every input (spec/functions.md functions.8; shown
// by `invar_prove erf` and `invar_prove erfc`, docs/evidence/functions.md). Lanes with table rows
// (num/table_lookup/table_lookup.h) use them; without them, or if they do not decide, binary64 with
// one final rounding. All coefficients are positive, so no sum cancels. Constants:
// tools/prove/coefficients/erf_coefficients.py.
#pragma once

#include "num/exp/reduced_sinh_cosh.h"
#include "num/table_lookup/table_lookup.h"
#include "num/table_lookup/tables.h"

namespace invar::num::INVAR_ISA_NS {

// erf x = x P(z)/Q(z), z = x^2, relative error 2^-53.
INVAR_INLINE F erf_wide(F x) {
  // Beyond this the result is 1.
  D d = to_double(clamp(x, -3.9375f, 3.9375f));
  D z = mul(d, d);
  D p = horner(z, 0x1.20dd750429b6dp+0, 0x1.a0abd181f9071p-3, 0x1.f88d7a9a9f11dp-5, 0x1.74068f5b0421ap-8,
               0x1.66acc06cb8e11p-11, 0x1.3ccd57b0e651dp-15, 0x1.34ce14995b636p-19, 0x1.2f10bfdd0ea3fp-24,
               0x1.0f04fa2a1151ep-29, 0x1.c7447a50e1165p-37);
  D q = horner(z, 1.0, 0x1.06fba3cd4119ep-1, 0x1.01a188d1a7db7p-3, 0x1.3dfd91c09f4c3p-6, 0x1.12bb6cd291927p-9,
               0x1.5c40e092eabc0p-13, 0x1.487e068cfac73p-17, 0x1.c5ef89473fedcp-22, 0x1.af57056875813p-27,
               0x1.d08945c2135dep-33, 0x1.7fb4459060bffp-42);
  return to_float(div(mul(d, p), q));
}

// erfc |x| = e^-z N(|x|)/M(|x|), relative error of the fraction 2^-54.8;  erfc(-|x|) = 2 - erfc
// |x|.
INVAR_INLINE F erfc_wide(F x) {
  // Beyond these the result is 2 or 0.
  F limited = clamp(x, -4.0f, 10.0625f);
  D d = to_double(limited), a = to_double(abs(limited));
  D n = horner(a, 1.0, 0x1.0bec81f708ef7p+1, 0x1.16e773824a2ddp+1, 0x1.7102ee588f0c8p+0, 0x1.51fbc6930f955p-1,
               0x1.ba192799bf7bdp-3, 0x1.9c63be7ee976ep-5, 0x1.0908ddbe61cc4p-7, 0x1.ac3b17e5b7d11p-11,
               0x1.4eb7685c6c9f5p-15);
  D m = horner(a, 1.0, 0x1.9c5b3c791dcacp+1, 0x1.3419676513c35p+2, 0x1.19df214432fd1p+2, 0x1.5e9c177d35544p+1,
               0x1.36c4001b181d1p+0, 0x1.8f1a6d23c9d0ep-2, 0x1.706f8a38f9d72p-4, 0x1.d6eb9e8fc2ba2p-7,
               0x1.7b827b5656a05p-10, 0x1.28a27ce45080ep-14);
  // -x^2 is exact and has at most 48 bits, so it is reduced like a binary32 number.
  ReducedSinhCosh e = reduced_sinh_cosh(mul(sub(set1_d(0.0), d), d));
  D one = set1_d(1.0);
  D power = scale_by_low_bits(fma(fma(e.r, fma(e.r, e.s, e.c), one), e.r, one), e.t);
  D y = div(mul(power, n), m);
  return to_float(select(lt(d, set1_d(0.0)), sub(set1_d(2.0), y), y));
}

// h of table_lookup.h for both, |d| <= 2^-8 and |c| <= 4: the derivative at c + s is exp(-2 c s -
// s^2) of that at c, so with v = c d and w = d^2, 1 + h = 1 - v + (2 v^2 - w)/3 - (2 v^3 - 3 v w)/6
// + w^2/10 + ...; what is left out is below 2^-21.5 of h. x + kBellRound rounds to a multiple of
// 1/128, which stays in the low bits.
constexpr float kBellRound = 0x1.8p16f;
INVAR_INLINE F bell_slope(F v, F w) {
  F p = fma(v, fma(v, set1(-0x1.555556p-2f), set1(0x1.555556p-1f)), set1(-1.0f));
  F q = fma(v, set1(0.5f), fma(w, set1(0.1f), set1(-0x1.555556p-2f)));
  return fma(v, p, mul(w, q));
}

template <bool stored>
INVAR_INLINE F erf_as(F x) {
  if constexpr (!kHasTableRows) return stored ? canonicalize(erf_wide(x)) : erf_wide(x);
  F a = abs(x), t = add(a, set1(kBellRound)), c = sub(t, set1(kBellRound)), d = sub(a, c);
  F h = bell_slope(mul(c, d), mul(d, d));
  RoundedResult v = round_if_certain(load_table_row(kErfRows.row, bit_and(bits(t), set1_i(511))), d, h);
  F y = or_sign(v.y, x);
  M sure = both(v.sure, inside(x, 0x1p-100f, 3.99f));
  if (__builtin_expect(all(sure), true)) return y;
  M none = eq(x, zero());  // from 3.93 on the result is 1
  M known = either(none, lt(set1(3.93f), a));
  F value = or_sign(select(none, zero(), set1(1.0f)), x);
  y = resolve_uncertain<erf_wide>(x, select(known, value, y), either(sure, known));
  return stored ? canonicalize(y) : y;
}

// erfc(-x) for |x| < 3.99.
INVAR_INLINE RoundedResult erfc_of_minus(F x) {
  F t = add(x, set1(kBellRound)), c = sub(t, set1(kBellRound)), d = sub(x, c);
  F h = bell_slope(mul(c, d), mul(d, d));
  return round_if_certain(load_table_row(kErfcRows.row, bit_and(bits(t), set1_i(1023))), d, h);
}
template <bool stored>
INVAR_INLINE F erfc_as(F x) {
  if constexpr (!kHasTableRows) return stored ? canonicalize(erfc_wide(x)) : erfc_wide(x);
  RoundedResult v = erfc_of_minus(neg(x));
  M sure = both(v.sure, lt(abs(x), set1(3.99f)));
  if (__builtin_expect(all(sure), true)) return v.y;
  M known = lt(x, set1(-3.98f));
  F y = resolve_uncertain<erfc_wide>(x, select(known, set1(2.0f), v.y), either(sure, known));
  return stored ? canonicalize(y) : y;
}

INVAR_INLINE F erf(F x) {
  return erf_as<false>(x);
}
INVAR_INLINE F erfc(F x) {
  return erfc_as<false>(x);
}

}  // namespace invar::num::INVAR_ISA_NS
