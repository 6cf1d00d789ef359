// rsqrt in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the result, else in
// binary64 (rsqrt.h): the same bits. (sqrt is binary32 alone anyhow.)
#pragma once

#include "num/ff/ff.h"
#include "num/root/rsqrt.h"

namespace invar::num::INVAR_ISA_NS {

// rsqrt.h with y0^2 in two parts; e = 1 - x y0^2 is known to 2^-46. x is scaled by 2^64 or 2^-64,
// so that nothing is lost below the smallest numbers.
INVAR_INLINE F rsqrt_ff(F x) {
  M small = lt(x, set1(0x1p-60f)), large = lt(set1(0x1p60f), x);
  F scale = select(small, set1(0x1p32f), select(large, set1(0x1p-32f), set1(1.0f)));
  F a = mul(mul(x, scale), scale), y0 = div(set1(1.0f), sqrt(a));
  FF p = ff_two_product(y0, y0);
  F minus_a = neg(a), e = fma(minus_a, p.lo, fma(minus_a, p.hi, set1(1.0f)));
  RoundedResult y = round_if_certain({y0, mul(mul(y0, e), fma(e, set1(0.375f), set1(0.5f)))}, 0x1p-18f);
  M sure = both(y.sure, both(lt(zero(), x), lt(x, set1(__builtin_inff()))));
  F v = mul(y.y, scale);
  return resolve_uncertain<rsqrt>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
