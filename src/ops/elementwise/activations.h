// Activations: spec.md elementwise.9 - elementwise.12. Each line is one rounding; nothing is stored inside a graph except
// where flushed() says so.
#pragma once
#include "num/functions.h"
#include "num/pow/lanes.h"
#include "ops/elementwise/arithmetic.h"

namespace invar::ops::INVAR_ISA_NS::graph {

#define INVAR_FROM_NUM(f) using num::INVAR_ISA_NS::f;
INVAR_FUNCTIONS(INVAR_FROM_NUM)
#undef INVAR_FROM_NUM
using num::INVAR_ISA_NS::atan2;
using num::INVAR_ISA_NS::pow;

// elementwise.9: piecewise linear.
INVAR_INLINE F relu(F x) {
  return at_least(x, 0.0f);
}
INVAR_INLINE F leakyrelu(F x, float alpha) {
  return select(lt(x, zero()), mul(set1(alpha), x), x);
}
INVAR_INLINE F prelu(F x, F slope) {
  return select(lt(x, zero()), mul(slope, x), x);
}
INVAR_INLINE F thresholdedrelu(F x, float alpha) {
  return select(less_equal(x, set1(alpha)), zero(), x);
}
INVAR_INLINE F shrink(F x, float lambd, float bias) {
  F inside = select(unordered(x, x), x, zero());
  F right = select(lt(set1(lambd), x), sub(x, set1(bias)), inside);
  return select(lt(x, set1(-lambd)), add(x, set1(bias)), right);
}
INVAR_INLINE F hardsigmoid(F x, float alpha, float beta) {
  return at_least(at_most(fma(set1(alpha), x, set1(beta)), 1.0f), 0.0f);
}
INVAR_INLINE F hardswish(F x) {
  return mul(x, hardsigmoid(x, 0x1.555556p-3f, 0.5f));
}
INVAR_INLINE F softsign(F x) {
  return div(x, add(set1(1.0f), abs(x)));
}

// elementwise.10: by the exponential.
INVAR_INLINE F sigmoid(F x) {
  return div(set1(1.0f), add(set1(1.0f), exp(neg(x))));
}
// formats.5 of a number that is not negative; NaN stays NaN.
INVAR_INLINE F flushed(F x) {
  return select(lt(x, set1(0x1p-126f)), zero(), x);
}
INVAR_INLINE F silu(F x) {
  return mul(x, flushed(sigmoid(x)));
}
INVAR_INLINE F swish(F x, float alpha) {
  return mul(x, flushed(sigmoid(mul(set1(alpha), x))));
}
// tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), e = exp(x); from x = 20 on it is 1 to the last bit.
INVAR_INLINE F mish(F x) {
  F e = exp(at_most(x, 20.0f));
  F n = mul(e, add(e, set1(2.0f)));
  return mul(x, div(n, add(n, set1(2.0f))));
}
// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation for negative x. Constants:
// 2 sqrt(2/pi) and 0.08943 sqrt(2/pi) to nearest.
INVAR_INLINE F gelu_tanh(F x) {
  F p = fma(mul(x, x), set1(0x1.2444f2p-4f), set1(0x1.988454p+0f));
  return div(x, add(set1(1.0f), exp(neg(mul(x, p)))));
}

// elementwise.12: by other functions.
INVAR_INLINE F elu(F x, float alpha) {
  return select(lt(x, zero()), mul(set1(alpha), expm1(x)), x);
}
INVAR_INLINE F selu(F x, float alpha, float gamma) {
  return mul(set1(gamma), elu(x, alpha));
}
INVAR_INLINE F celu(F x, float alpha) {
  return select(lt(x, zero()), mul(set1(alpha), expm1(div(x, set1(alpha)))), x);
}
// x/2 erfc(-x / sqrt(2)). For x < 0 one part of t = -x / sqrt(2) is 2 t^2 and more of erfc t, so what rounding t loses, r, is
// made good: erfc(t + r) = erfc(t) (1 - r m), m = 2/sqrt(pi) exp(-t^2) / erfc(t), which t + sqrt(t^2 + 4/pi) gives well enough.
// Below -20 all is -0. Constants: 1/sqrt(2) in two parts, 4/pi, to nearest. Farthest from x/2 erfc(-x / sqrt(2)) in binary64, of
// all inputs: 2.6 units in the last place; 7.2 below -12.9, where erfc is subnormal.
INVAR_INLINE F gelu(F x) {
  F y = neg(at_least(x, -20.0f)), c = set1(0x1.6a09e6p-1f);
  F t = mul(y, c);
  F r = fma(y, set1(0x1.9fcef4p-27f), fma(y, c, neg(t)));
  F m = add(t, sqrt(fma(t, t, set1(0x1.45f306p+0f))));
  F e = erfc(t);
  F lost = select(lt(x, zero()), mul(r, m), zero());
  return mul(mul(set1(0.5f), x), fma(neg(lost), e, e));
}
// log(1 + exp(x)) without overflow and without cancellation.
INVAR_INLINE F softplus(F x) {
  return add(at_least(x, 0.0f), log1p(exp(neg(abs(x)))));
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
