// Graphs of one IEEE operation or one comparison: elementwise.5 - elementwise.8. Like all
// graphs of this room, they take lanes F and attributes as plain floats and do no loads or stores,
// so that they can be chained; compiled once per instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS::graph {

using num::INVAR_ISA_NS::abs;
using num::INVAR_ISA_NS::add;
using num::INVAR_ISA_NS::div;
using num::INVAR_ISA_NS::floor;
using num::INVAR_ISA_NS::mul;
using num::INVAR_ISA_NS::neg;
using num::INVAR_ISA_NS::sqrt;
using num::INVAR_ISA_NS::sub;
using num::INVAR_ISA_NS::trunc;

INVAR_INLINE F max(F a, F b) {
  return maximum(a, b);
}
INVAR_INLINE F min(F a, F b) {
  return minimum(a, b);
}
INVAR_INLINE F ceil(F x) {
  return neg(floor(neg(x)));
}
INVAR_INLINE F round(F x) {
  return round_even(x);
}
INVAR_INLINE F reciprocal(F x) {
  return div(set1(1.0f), x);
}
INVAR_INLINE F sign(F x) {
  F one = select(lt(zero(), x), set1(1.0f), select(lt(x, zero()), set1(-1.0f), zero()));
  return select(unordered(x, x), x, one);
}
// maximum and minimum with a constant that is not NaN, in fewer operations: if x and c are zeros of
// different signs, adding +0 or -0 to x first yields the result of formats.7. at_most does not
// support c = -0.
INVAR_INLINE F at_least(F x, float c) {
  F y = add(x, set1(num::f32_bits(c) == 0 ? 0.0f : -0.0f));
  return select(lt(y, set1(c)), set1(c), y);
}
INVAR_INLINE F at_most(F x, float c) {
  return select(lt(set1(c), x), set1(c), x);
}
INVAR_INLINE F clip(F x, float low, float high) {
  if (low == low && high == high && num::f32_bits(high) != 0x80000000u)
    return at_most(at_least(x, low), high);
  return minimum(maximum(x, set1(low)), set1(high));
}

// Comparisons are false if an operand is NaN.
INVAR_INLINE M equal(F a, F b) {
  return eq(a, b);
}
INVAR_INLINE M less(F a, F b) {
  return lt(a, b);
}
INVAR_INLINE M greater(F a, F b) {
  return lt(b, a);
}
INVAR_INLINE M less_equal(F a, F b) {
  return either(lt(a, b), eq(a, b));
}
INVAR_INLINE M greater_equal(F a, F b) {
  return either(lt(b, a), eq(a, b));
}
INVAR_INLINE M isnan(F x) {
  return unordered(x, x);
}
// negative, positive: 1 if that infinity counts, else 0. No number equals NaN.
INVAR_INLINE M isinf(F x, float negative, float positive) {
  F inf = set1(__builtin_inff()), nan = from_bits(set1_i(0x7fc00000));
  return either(eq(x, select(lt(zero(), set1(positive)), inf, nan)),
                eq(x, select(lt(zero(), set1(negative)), neg(inf), nan)));
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
