// sinh, cosh and tanh in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the
// result, else in binary64 (hyperbolic.h): the same bits.
#pragma once

#include "num/exp/exp_ff.h"
#include "num/hyperbolic/hyperbolic.h"

namespace invar::num::INVAR_ISA_NS {

// With a = |x| and 2 a = n ln2 + r: e^2a - 1 = 2^n ((e^r - 1) + (1 - 2^-n)), and tanh a = (e^2a -
// 1) / (e^2a + 1) = u / (u + 2^(1-n)), u = (e^r - 1) + (1 - 2^-n).
INVAR_INLINE F tanh_ff(F x) {
  F a = abs(x), d = clamp(a, 0x1p-13f, 9.5f);
  ReducedFF r = reduce_ln2_ff(add(d, d));
  Expm1FF e = expm1_ff_scaled(r);
  FF v = ff_add(e.u, {add(e.back, e.back), zero()});
  RoundedResult y = round_if_certain(ff_div(e.u, ff_fast_two_sum(v.hi, v.lo)), 0x1p-16f);
  // x itself below 2^-13 (x - x^3/3 rounds to it), +-1 above 9.1.
  M tiny = lt(a, set1(0x1p-13f)), large = lt(set1(9.1f), a);
  M sure = either(either(tiny, large), both(y.sure, lt(a, set1(9.2f))));
  F v1 = or_sign(select(large, set1(1.0f), y.y), x);
  F w = select(tiny, x, v1);
  return resolve_uncertain<tanh_wide>(x, w, sure);
}

// u = e^|x| - 1 as a whole, n <= 126: 2 sinh |x| = u + u / (u + 1), 2 cosh x = (u + 1) + 1 / (u +
// 1).
struct HalvesFF {
  FF u, power;
};
INVAR_INLINE HalvesFF halves_ff(F a) {
  ReducedFF r = reduce_ln2_ff(clamp(a, 0x1p-12f, 87.0f));
  FF w = expm1_ff_scaled(r).u;
  F scale = from_bits(add(set1_i(0x3f800000), shift_left<23>(bits(r.t))));
  FF u = {mul(w.hi, scale), mul(w.lo, scale)}, p = ff_two_sum(set1(1.0f), u.hi);
  return {u, ff_fast_two_sum(p.hi, add(p.lo, u.lo))};
}
INVAR_INLINE F sinh_ff(F x) {
  F a = abs(x);
  HalvesFF h = halves_ff(a);
  RoundedResult y = round_if_certain(ff_add(h.u, ff_div(h.u, h.power)), 0x1p-16f);
  M tiny = lt(a, set1(0x1p-12f));  // x + x^3/6 rounds to x
  M sure = either(tiny, both(y.sure, lt(a, set1(86.9f))));
  F v = select(tiny, x, flip_with(mul(y.y, set1(0.5f)), x));
  return resolve_uncertain<sinh>(x, v, sure);
}
INVAR_INLINE F cosh_ff(F x) {
  F a = abs(x);
  HalvesFF h = halves_ff(a);
  RoundedResult y = round_if_certain(ff_add(h.power, ff_div(set1_ff(1.0f, 0.0f), h.power)), 0x1p-16f);
  M tiny = lt(a, set1(0x1p-12f));  // 1 + x^2/2 rounds to 1
  M sure = either(tiny, both(y.sure, lt(a, set1(86.9f))));
  F v = select(tiny, set1(1.0f), mul(y.y, set1(0.5f)));
  return resolve_uncertain<cosh>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
