// sinpi and cospi in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the
// result, else in binary64 (sinpi.h): the same bits.
#pragma once

#include "num/sincos/sincos_ff.h"
#include "num/sinpi/sinpi.h"

namespace invar::num::INVAR_ISA_NS {

// |x| below 2^21 is n + r or n + 1/2 + r, exactly (below 1/2 the latter r has two parts).
INVAR_INLINE RoundedResult sin_of_pi_times_ff(FF r) {
  FF p = ff_mul(set1_ff(0x1.921fb6p+1f, -0x1.777a5cp-24f), r);
  return sin_of_reduced_ff(ff_fast_two_sum(p.hi, p.lo));
}
INVAR_INLINE F sinpi_ff(F x) {
  F a = abs(x), t = add(a, set1(kRoundFF)), r = sub(a, sub(t, set1(kRoundFF)));
  RoundedResult y = sin_of_pi_times_ff({r, zero()});
  M whole = eq(r, zero());  // +0, then the sign of x
  F v = flip_with(select(whole, zero(), flip_by_low_bit(y.y, t)), x);
  M sure = both(either(whole, both(y.sure, lt(set1(0x1p-50f), abs(r)))), lt(a, set1(0x1p21f)));
  return resolve_uncertain<sinpi>(x, v, sure);
}
INVAR_INLINE F cospi_ff(F x) {
  F a = abs(x), odd = set1(kRoundFF + 1), t = add(sub(a, set1(0.5f)), odd);
  FF r = ff_two_sum(a, sub(set1(-0.5f), sub(t, odd)));
  RoundedResult y = sin_of_pi_times_ff(r);
  M zeros = eq(r.hi, zero()), tiny = lt(a, set1(0x1p-14f));
  F v = select(tiny, set1(1.0f), select(zeros, zero(), flip_by_low_bit(y.y, t)));
  M sure = either(tiny, both(either(y.sure, zeros), lt(a, set1(0x1p21f))));
  return resolve_uncertain<cospi>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
