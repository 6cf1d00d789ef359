// Double-double arithmetic: the unevaluated sum hi + lo of two binary64 numbers, |lo| <= ulp(hi)/2.
// Relative error of each operation below 2^-100; no branches, no library. For functions that
// binary64 alone would round wrongly.
#pragma once

#include <cstdint>

#include "num/inline.h"

namespace invar::num {

struct DD {
  double hi, lo;
};

// a + b exactly, where |a| >= |b| or a = 0.
INVAR_INLINE DD fast_two_sum(double a, double b) {
  double s = a + b;
  return {s, b - (s - a)};
}
INVAR_INLINE DD two_sum(double a, double b) {
  double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
INVAR_INLINE DD two_product(double a, double b) {
  double p = a * b;
  return {p, __builtin_fma(a, b, -p)};
}
INVAR_INLINE DD dd_add(DD a, DD b) {
  DD s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
  s = fast_two_sum(s.hi, s.lo + t.hi);
  return fast_two_sum(s.hi, s.lo + t.lo);
}
// a + b where |a.hi| >= 2 |b.hi|: a third of the operations.
INVAR_INLINE DD dd_add_smaller(DD a, DD b) {
  DD s = fast_two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}
INVAR_INLINE DD dd_mul(DD a, DD b) {
  DD p = two_product(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (__builtin_fma(a.hi, b.lo, a.lo * b.hi)));
}
// Relative error below 2^-98: the remainder of the first quotient is exact but for the products
// with b.lo.
INVAR_INLINE DD dd_div(DD a, DD b) {
  double q = a.hi / b.hi;
  double r = __builtin_fma(-q, b.hi, a.hi) + __builtin_fma(-q, b.lo, a.lo);
  return fast_two_sum(q, r / b.hi);
}
INVAR_INLINE DD dd_neg(DD a) {
  return {-a.hi, -a.lo};
}

// hi + lo rounded once to binary32: first to binary64 with the last bit made odd if anything was
// lost (round to odd). That preserves on which side of a tie the exact value is, so the second
// rounding is the only one.
INVAR_INLINE float f32_from_dd(DD a) {
  DD s = fast_two_sum(a.hi, a.lo);
  uint64_t u = __builtin_bit_cast(uint64_t, s.hi);
  if (s.lo != 0 && !(u & 1)) u += ((s.lo > 0) == (s.hi > 0)) ? 1u : ~uint64_t{0};
  return static_cast<float>(__builtin_bit_cast(double, u));
}

}  // namespace invar::num
