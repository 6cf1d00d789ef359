// sqrt, which is one operation of binary32, and cbrt in float-float binary32 arithmetic
// (num/ff/ff.h) wherever that decides the result, else in binary64 (cbrt.h): the same bits.
#pragma once

#include "num/ff/ff.h"
#include "num/root/cbrt.h"
#include "num/root/sqrt.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F sqrt_ff(F x) {
  return sqrt(x);
}

// y near d^(1/3) from a third of d's bits (0.034), by two of Halley's steps (2^-23); then what y^3
// leaves of d in two parts: with q = (d - y^3) / y^3, d^(1/3) = y (1 + q/3 - q^2/9 + ...). d is
// scaled by 2^72 or 2^-72, so that nothing is lost.
INVAR_INLINE F cbrt_ff(F x) {
  F a = abs(x);
  M small = lt(a, set1(0x1p-48f)), large = lt(set1(0x1p48f), a);
  F d = mul(a, select(small, set1(0x1p72f), select(large, set1(0x1p-72f), set1(1.0f))));
  F y = from_bits(truncate(fma(to_float(bits(d)), set1(1 / 3.0f), set1(709921077.0f))));
  for (int i = 0; i < 2; ++i) {
    F cube = mul(mul(y, y), y), twice = add(d, d);
    y = mul(y, div(add(cube, twice), add(add(cube, cube), d)));
  }
  FF cube = ff_mul(ff_two_product(y, y), y), rest = ff_two_sum(d, neg(cube.hi));
  F q = div(sub(add(rest.hi, rest.lo), cube.lo), cube.hi), third = mul(q, set1(1 / 3.0f));
  RoundedResult r = round_if_certain({y, mul(y, fma(neg(third), third, third))}, 0x1p-17f);
  M sure = both(r.sure, both(lt(zero(), a), lt(a, set1(__builtin_inff()))));
  F v = flip_with(mul(r.y, select(small, set1(0x1p-24f), select(large, set1(0x1p24f), set1(1.0f)))), x);
  return resolve_uncertain<cbrt>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
