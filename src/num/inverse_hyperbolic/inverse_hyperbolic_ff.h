// asinh, acosh and atanh in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the
// result, else in binary64 (asinh.h and atanh.h): the same bits.
#pragma once

#include "num/ff/series.h"
#include "num/inverse_hyperbolic/asinh.h"
#include "num/inverse_hyperbolic/atanh.h"
#include "num/log/log_ff.h"

namespace invar::num::INVAR_ISA_NS {

// log(sinh y + cosh y) as in asinh.h.
INVAR_INLINE RoundedResult log_of_sum_ff(FF sinh, FF cosh) {
  FF u = ff_add(cosh, sinh), one = set1_ff(1.0f, 0.0f);
  SplitFF p = split_ff(u.hi);
  F power = from_bits(shift_left<23>(p.field));
  M e_is_0 = eq(p.e, zero());
  FF less = ff_two_sum(u.hi, neg(power)), more = ff_two_sum(u.hi, power), more_0 = ff_add(cosh, one);
  FF over = {select(e_is_0, sinh.hi, less.hi), select(e_is_0, sinh.lo, add(less.lo, u.lo))};
  FF under = {select(e_is_0, more_0.hi, more.hi), select(e_is_0, more_0.lo, add(more.lo, u.lo))};
  FF s = ff_div(ff_fast_two_sum(over.hi, over.lo), ff_fast_two_sum(under.hi, under.lo));
  return round_if_certain(ff_sum_of_log(p.e, 0x1.62e43p-1f, -0x1.05c61p-29f, twice_atanh_ff(s)), 0x1p-16f);
}
// sqrt(x^2 + c), c = 1 or -1.
INVAR_INLINE FF leg_ff(F x, float c) {
  FF square = ff_two_product(x, x), s = ff_two_sum(square.hi, set1(c));
  return ff_sqrt(ff_fast_two_sum(s.hi, add(s.lo, square.lo)));
}

INVAR_INLINE F asinh_ff(F x) {
  F a = abs(x), d = clamp(a, 0x1p-12f, 0x1p60f);
  RoundedResult y = log_of_sum_ff({d, zero()}, leg_ff(d, 1.0f));
  M tiny = lt(a, set1(0x1p-12f));  // x - x^3/6 rounds to x
  M sure = either(tiny, both(y.sure, lt(a, set1(0x1p60f))));
  F v = select(tiny, x, flip_with(y.y, x));
  return resolve_uncertain<asinh>(x, v, sure);
}
INVAR_INLINE F acosh_ff(F x) {
  F d = clamp(x, 1.0f, 0x1p60f);
  RoundedResult y = log_of_sum_ff(leg_ff(d, -1.0f), {d, zero()});
  M sure = both(y.sure, both(lt(set1(1.0f), x), lt(x, set1(0x1p60f))));
  return resolve_uncertain<acosh>(x, y.y, sure);
}

// atanh.h with the exponent k of the quotient (1 + a) / (1 - a); p = 2^k, 1 + p and 1 - p exact.
INVAR_INLINE F atanh_ff(F x) {
  F a = abs(x), d = clamp(a, 0x1p-12f, 1 - 0x1p-20f), one = set1(1.0f);
  SplitFF q = split_ff(div(add(one, d), sub(one, d)));
  F p = from_bits(shift_left<23>(q.field)), less = sub(one, p), more = add(one, p);
  FF u = ff_two_product(d, more), v = ff_two_product(d, less);
  FF over = ff_two_sum(less, u.hi), under = ff_two_sum(more, v.hi);
  FF s = ff_div(ff_fast_two_sum(over.hi, add(over.lo, u.lo)), ff_fast_two_sum(under.hi, add(under.lo, v.lo)));
  RoundedResult y =
      round_if_certain(ff_sum_of_log(q.e, 0x1.62e43p-1f, -0x1.05c61p-29f, twice_atanh_ff(s)), 0x1p-16f);
  M tiny = lt(a, set1(0x1p-12f));  // x + x^3/3 rounds to x
  M sure = either(tiny, both(y.sure, lt(a, set1(1 - 0x1p-20f))));
  F r = select(tiny, x, flip_with(mul(y.y, set1(0.5f)), x));
  return resolve_uncertain<atanh>(x, r, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
