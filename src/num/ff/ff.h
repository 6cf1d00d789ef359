// Float-float arithmetic over lanes: the unevaluated sum hi + lo of two binary32 numbers, |lo| <=
// ulp(hi)/2, for processors with slow binary64 (most GPUs). A function computes f(x) to about
// 2^-44, and its caller asks round_if_certain() whether that decides the result; for the few other
// inputs binary64 does. So both sequences give the same bits. The margins that callers pass are 16
// times those at which inputs near a tie still came out right; they are not derived bounds. The
// proof that no accepted result is wrong is the digest of all 2^32 outputs (`invar_prove digest
// NAME.ff`).
//
// All operations are exact or lose at most about 2^-46 of the result if nothing is subnormal:
// ff_two_product loses its lower half below 2^-102, so callers avoid that range.
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

// Whether the float-float sequences are faster here: on a GPU with few binary64 units. Functions
// that need binary64 for few inputs only, by tables (kHasTableRows, kTable), or once per row, do
// not ask.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ != 1000
constexpr bool kFloatFloat = true;
#else
constexpr bool kFloatFloat = false;
#endif

struct FF {
  F hi, lo;
};

// Works as kRound: x + kRoundFF rounds |x| < 2^22 to an integer, which stays in the low bits.
constexpr float kRoundFF = 0x1.8p23f;

INVAR_INLINE FF set1_ff(float hi, float lo) {
  return {set1(hi), set1(lo)};
}
// a + b exactly, where |a| >= |b| or a = 0.
INVAR_INLINE FF ff_fast_two_sum(F a, F b) {
  F s = add(a, b);
  return {s, sub(b, sub(s, a))};
}
INVAR_INLINE FF ff_two_sum(F a, F b) {
  F s = add(a, b), t = sub(s, a);
  return {s, add(sub(a, sub(s, t)), sub(b, t))};
}
INVAR_INLINE FF ff_two_product(F a, F b) {
  F p = mul(a, b);
  return {p, fma(a, b, neg(p))};
}
INVAR_INLINE FF ff_mul(FF a, F b) {
  FF p = ff_two_product(a.hi, b);
  return {p.hi, fma(a.lo, b, p.lo)};
}
INVAR_INLINE FF ff_mul(FF a, FF b) {
  FF p = ff_two_product(a.hi, b.hi);
  return {p.hi, fma(a.hi, b.lo, fma(a.lo, b.hi, p.lo))};
}
// a + b, where |a.hi| >= |b.hi|.
INVAR_INLINE FF ff_add_smaller(FF a, FF b) {
  FF s = ff_fast_two_sum(a.hi, b.hi);
  return {s.hi, add(s.lo, add(a.lo, b.lo))};
}
// a + b for any two of one sign.
INVAR_INLINE FF ff_add(FF a, FF b) {
  FF s = ff_two_sum(a.hi, b.hi);
  return {s.hi, add(s.lo, add(a.lo, b.lo))};
}
// a / b: the quotient of the high parts and what it leaves.
INVAR_INLINE FF ff_div(FF a, FF b) {
  F q = div(a.hi, b.hi);
  F rest = fma(neg(q), b.hi, a.hi);  // exact
  rest = sub(add(rest, a.lo), mul(q, b.lo));
  return ff_fast_two_sum(q, div(rest, b.hi));
}

INVAR_INLINE RoundedResult round_if_certain(FF a, float doubt) {
  return round_if_certain(a.hi, a.lo, doubt);
}

}  // namespace invar::num::INVAR_ISA_NS
