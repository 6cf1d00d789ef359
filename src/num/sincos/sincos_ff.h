// sin and cos in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the result,
// else in binary64 (sincos.h): the same bits. Constants:
// tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/ff/ff.h"
#include "num/sincos/sincos.h"

namespace invar::num::INVAR_ISA_NS {

// a - n pi for n an integer or an integer and a half below 2^17, |a - n pi| < 1.7: from a = 1 on
// the difference with the first part of pi is exact, below it (n is 0 or 1/2) the product is. What
// is lost in the low part is below 2^-56 absolutely and 2^-47 relatively.
INVAR_INLINE FF less_pi_times_ff(F a, F n) {
  F minus_pi = set1(-0x1.921fb6p+1f), r = fma(n, minus_pi, a);
  F lost = select(lt(a, set1(1.0f)), sub(a, sub(r, mul(n, minus_pi))), zero());
  FF p = ff_two_product(n, set1(0x1.777a5cp-24f)), s = ff_two_sum(r, p.hi);
  return ff_fast_two_sum(s.hi, fma(n, set1(0x1.ee59dap-49f), add(add(s.lo, lost), p.lo)));
}
// sin(r) = r + r z S(z), z = r^2, the Taylor series; its terms from r^13 on matter only to 2^-24
// and are summed in binary32.
INVAR_INLINE RoundedResult sin_of_reduced_ff(FF r) {
  FF z = ff_mul(r, r);
  F f = horner(z.hi, 0x1.612462p-33f, -0x1.ae7f3ep-41f, 0x1.952c78p-49f, -0x1.2f49b4p-57f);
  FF q = ff_add_smaller(set1_ff(-0x1.ae6456p-26f, -0x1.fd5138p-52f), {mul(f, z.hi), zero()});
  q = ff_add_smaller(set1_ff(0x1.71de3ap-19f, 0x1.55b1ccp-45f), ff_mul(q, z));
  q = ff_add_smaller(set1_ff(-0x1.a01a02p-13f, 0x1.7f97fap-39f), ff_mul(q, z));
  q = ff_add_smaller(set1_ff(0x1.111112p-7f, -0x1.dddddep-32f), ff_mul(q, z));
  q = ff_add_smaller(set1_ff(-0x1.555556p-3f, 0x1.555556p-28f), ff_mul(q, z));
  return round_if_certain(ff_add_smaller(r, ff_mul(ff_mul(r, z), q)), 0x1p-16f);
}
// Beyond, or nearer to a multiple of pi, more of pi would be wanted.
INVAR_INLINE M decided_by_ff(F a, FF r) {
  return both(lt(a, set1(0x1p18f)), lt(set1(0x1p-11f), abs(r.hi)));
}
INVAR_INLINE F flip_by_low_bit(F y, F t) {
  return from_bits(bit_xor(bits(y), shift_left<31>(bits(t))));
}

INVAR_INLINE F sin_ff(F x) {
  F a = abs(x), t = fma(a, set1(0x1.45f306p-2f), set1(kRoundFF));
  FF r = less_pi_times_ff(a, sub(t, set1(kRoundFF)));
  RoundedResult y = sin_of_reduced_ff(r);
  M tiny = lt(a, set1(0x1p-12f));  // x - x^3/6 rounds to x
  M sure = either(tiny, both(y.sure, decided_by_ff(a, r)));
  F v = select(tiny, x, flip_with(flip_by_low_bit(y.y, t), x));
  return resolve_uncertain<sin>(x, v, sure);
}

// a = (n + 1/2) pi + r: cos a = (-1)^(n+1) sin(r).
INVAR_INLINE F cos_ff(F x) {
  F a = abs(x), odd = set1(kRoundFF + 1);
  F t = add(fma(a, set1(0x1.45f306p-2f), set1(-0.5f)), odd);
  FF r = less_pi_times_ff(a, add(sub(t, odd), set1(0.5f)));
  RoundedResult y = sin_of_reduced_ff(r);
  M sure = both(y.sure, decided_by_ff(a, r));
  F v = flip_by_low_bit(y.y, t);
  return resolve_uncertain<cos>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
