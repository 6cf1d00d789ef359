// tanh with binary32 arithmetic alone wherever that decides the result, else by hyperbolic.h (num/ff/ff.h): the same bits.
#pragma once

#include "num/exp/exp_ff.h"
#include "num/hyperbolic/hyperbolic.h"

namespace invar::num::INVAR_ISA_NS {

// With a = |x| and 2 a = n ln2 + r: e^2a - 1 = 2^n ((e^r - 1) + (1 - 2^-n)), and tanh a = (e^2a - 1) / (e^2a + 1) =
// u / (u + 2^(1-n)), u = (e^r - 1) + (1 - 2^-n).
INVAR_INLINE F tanh_ff(F x) {
  F a = abs(x), d = clamp(a, 0x1p-13f, 9.5f);
  ReducedFF r = reduce_ln2_ff(add(d, d));
  FF m = expm1_ff_fraction(r.h, r.l);
  F back = from_bits(sub(set1_i(0x3f800000), shift_left<23>(bits(r.t))));  // 2^-n
  FF one = ff_two_sum(set1(1.0f), neg(back));
  FF sum = ff_two_sum(one.hi, m.hi);
  FF u = ff_fast_two_sum(sum.hi, add(sum.lo, add(one.lo, m.lo)));
  FF v = ff_add(u, {add(back, back), zero()});
  Rounded y = rounds(ff_div(u, ff_fast_two_sum(v.hi, v.lo)), 0x1p-41f);
  // x itself below 2^-13 (x - x^3/3 rounds to it), +-1 above 9.1.
  M tiny = lt(a, set1(0x1p-13f)), large = lt(set1(9.1f), a);
  M sure = either(either(tiny, large), both(y.sure, lt(a, set1(9.2f))));
  F v1 = or_sign(select(large, set1(1.0f), y.y), x);
  F w = select(tiny, x, v1);
  return all(sure) ? w : select(sure, w, tanh(x));
}

}  // namespace invar::num::INVAR_ISA_NS
