// exp, exp2, exp10 and expm1 in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides
// the result, else in binary64 (exp.h and so on): the same bits. Constants:
// tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/exp/exp.h"
#include "num/exp/exp10.h"
#include "num/exp/exp2.h"
#include "num/exp/expm1.h"
#include "num/ff/ff.h"

namespace invar::num::INVAR_ISA_NS {

// x = n ln2 + h + l, |h| <= 0.35, h + l to about 2^-47 of 1; n in the low bits of t (n + kRoundFF).
struct ReducedFF {
  F t, n, h, l;
};
INVAR_INLINE ReducedFF reduce_ln2_ff(F x) {
  F t = fma(x, set1(0x1.715476p+0f), set1(kRoundFF));
  F n = sub(t, set1(kRoundFF));
  F r = fma(n, set1(-0x1.62e43p-1f), x);  // exact: a multiple of 2^-25 below 1/2
  FF p = ff_two_product(n, set1(0x1.05c61p-29f));
  FF s = ff_two_sum(r, p.hi);
  FF u = ff_fast_two_sum(s.hi, fma(n, set1(0x1.950d88p-54f), add(s.lo, p.lo)));
  return {t, n, u.hi, u.lo};
}

// c + h q
INVAR_INLINE FF step_ff(FF c, F h, FF q) {
  return ff_add_smaller(c, ff_mul(q, h));
}

// e^(h + l) - 1 for |h| <= 0.35, to about 2^-44 relatively. Taylor coefficients: those of h^7 and
// on matter only to 2^-23 and are summed in binary32. l comes in by the derivative.
INVAR_INLINE FF expm1_ff_fraction(F h, F l) {
  F f = set1(0x1.1eed8ep-29f);
  f = fma(f, h, set1(0x1.ae6456p-26f));
  f = fma(f, h, set1(0x1.27e4fcp-22f));
  f = fma(f, h, set1(0x1.71de3ap-19f));
  f = fma(f, h, set1(0x1.a01a02p-16f));
  f = fma(f, h, set1(0x1.a01a02p-13f));
  FF q = ff_add_smaller(set1_ff(0x1.6c16c2p-10f, -0x1.27d27ep-35f), {mul(f, h), zero()});
  q = step_ff(set1_ff(0x1.111112p-7f, -0x1.dddddep-32f), h, q);
  q = step_ff(set1_ff(0x1.555556p-5f, -0x1.555556p-30f), h, q);
  q = step_ff(set1_ff(0x1.555556p-3f, -0x1.555556p-28f), h, q);
  q = step_ff(set1_ff(0.5f, 0.0f), h, q);
  q = step_ff(set1_ff(1.0f, 0.0f), h, q);
  FF m = ff_mul(q, h);
  return {m.hi, add(m.lo, fma(l, m.hi, l))};
}

// y 2^n for n from the low bits of t, by adding to the exponent: for normal results.
INVAR_INLINE F scale_ff(F y, F t) {
  return from_bits(add(bits(y), shift_left<23>(bits(t))));
}
INVAR_INLINE M between(F x, float low, float high) {
  return both(lt(set1(low), x), lt(x, set1(high)));
}

INVAR_INLINE F exp_ff(F x) {
  F d = clamp(x, -104.0f, 89.0f);
  ReducedFF r = reduce_ln2_ff(d);
  RoundedResult y =
      round_if_certain(ff_add_smaller(set1_ff(1.0f, 0.0f), expm1_ff_fraction(r.h, r.l)), 0x1p-17f);
  // Inside, the result is normal and finite; below -103.98 it is 0, above 88.722839 infinity.
  F v = scale_ff(y.y, r.t);
  M inside = both(y.sure, between(x, -87.0f, 88.7228f)), zeros = lt(x, set1(-104.0f)),
    over = lt(set1(89.0f), x);
  M sure = either(inside, either(zeros, over));
  v = select(inside, v, select(over, set1(__builtin_inff()), zero()));
  return resolve_uncertain<exp_wide>(x, v, sure);
}

INVAR_INLINE F exp2_ff(F x) {
  F d = clamp(x, -151.0f, 129.0f);
  F t = add(d, set1(kRoundFF));
  F h = sub(d, sub(t, set1(kRoundFF)));  // exact
  F f = set1(0x1.c3bd66p-36f);
  f = fma(f, h, set1(0x1.e8cac8p-32f));
  f = fma(f, h, set1(0x1.e4cf52p-28f));
  f = fma(f, h, set1(0x1.b5253ep-24f));
  f = fma(f, h, set1(0x1.62c022p-20f));
  f = fma(f, h, set1(0x1.ffcbfcp-17f));
  FF q = ff_add_smaller(set1_ff(0x1.430912p-13f, 0x1.f0d8fp-38f), {mul(f, h), zero()});
  q = step_ff(set1_ff(0x1.5d87fep-10f, 0x1.e299ccp-36f), h, q);
  q = step_ff(set1_ff(0x1.3b2ab6p-7f, 0x1.f749cep-32f), h, q);
  q = step_ff(set1_ff(0x1.c6b08ep-5f, -0x1.1f6be8p-30f), h, q);
  q = step_ff(set1_ff(0x1.ebfbep-3f, -0x1.f4e9c6p-33f), h, q);
  q = step_ff(set1_ff(0x1.62e43p-1f, -0x1.05c61p-29f), h, q);
  q = step_ff(set1_ff(1.0f, 0.0f), h, q);
  RoundedResult y = round_if_certain(q, 0x1p-17f);
  F v = scale_ff(y.y, t);
  M inside = both(y.sure, between(x, -126.0f, 128.0f)), zeros = lt(x, set1(-150.0f)),
    over = lt(set1(127.99999f), x);
  M sure = either(inside, either(zeros, over));
  v = select(over, set1(__builtin_inff()), select(inside, v, zero()));
  return resolve_uncertain<exp2_wide>(x, v, sure);
}

// x = n log10(2) + f + g, and (f + g) log(10) = h + l.
INVAR_INLINE F exp10_ff(F x) {
  F d = clamp(x, -46.0f, 39.0f);
  F t = fma(d, set1(0x1.a934fp+1f), set1(kRoundFF)), n = sub(t, set1(kRoundFF));
  FF p = ff_two_product(n, set1(0x1.ec10cp-27f));
  FF s = ff_two_sum(fma(n, set1(-0x1.344136p-2f), d),
                    p.hi);  // the difference is exact: a multiple of 2^-26 below 1/4
  FF f = ff_fast_two_sum(s.hi, fma(n, set1(0x1.0cee0ep-54f), add(s.lo, p.lo)));
  FF r = ff_mul(f, set1_ff(0x1.26bb1cp+1f, -0x1.12aabap-25f));
  RoundedResult y =
      round_if_certain(ff_add_smaller(set1_ff(1.0f, 0.0f), expm1_ff_fraction(r.hi, r.lo)), 0x1p-17f);
  F v = scale_ff(y.y, t);
  M inside = both(y.sure, between(x, -37.9f, 38.5f)), zeros = lt(x, set1(-46.0f)), over = lt(set1(39.0f), x);
  M sure = either(inside, either(zeros, over));
  v = select(inside, v, select(over, set1(__builtin_inff()), zero()));
  return resolve_uncertain<exp10_wide>(x, v, sure);
}

// (e^x - 1) 2^-n = (e^(h + l) - 1) + (1 - 2^-n): both exact for |n| <= 23; beyond, 1 - 2^-n is
// rounded by less than the 2^-47 that do not count. back = 2^-n.
struct Expm1FF {
  FF u;
  F back;
};
INVAR_INLINE Expm1FF expm1_ff_scaled(ReducedFF r) {
  FF m = expm1_ff_fraction(r.h, r.l);
  F back = from_bits(sub(set1_i(0x3f800000), shift_left<23>(bits(r.t))));
  FF one = ff_two_sum(set1(1.0f), neg(back));
  FF sum = ff_two_sum(one.hi, m.hi);
  return {ff_fast_two_sum(sum.hi, add(sum.lo, add(one.lo, m.lo))), back};
}

INVAR_INLINE F expm1_ff(F x) {
  F d = clamp(x, -20.0f, 89.0f);
  ReducedFF r = reduce_ln2_ff(d);
  RoundedResult y = round_if_certain(expm1_ff_scaled(r).u, 0x1p-16f);
  F v = scale_ff(y.y, r.t);
  // x itself below 2^-25 (x + x^2/2 rounds to it), -1 below -18.
  M tiny = lt(abs(x), set1(0x1p-25f)), least = lt(x, set1(-18.0f));
  M inside = both(y.sure, between(x, -18.5f, 88.0f)), over = lt(set1(89.0f), x);
  M sure = either(either(inside, tiny), either(least, over));
  v = select(tiny, x, select(over, set1(__builtin_inff()), select(least, set1(-1.0f), v)));
  return resolve_uncertain<expm1>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
