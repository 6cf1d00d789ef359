// Gradients of activation functions: elementwise.20. Each line is one rounding.
#pragma once
#include "ops/elementwise/graphs/activations.h"

namespace invar::ops::INVAR_ISA_NS::graph {

// These take the result y.
INVAR_INLINE F relu_backward(F grad, F y) {
  return select(less_equal(y, zero()), zero(), grad);
}
INVAR_INLINE F sigmoid_backward(F grad, F y) {
  return mul(mul(grad, sub(set1(1.0f), y)), y);
}
INVAR_INLINE F tanh_backward(F grad, F y) {
  return mul(grad, fma(neg(y), y, set1(1.0f)));
}

// sigmoid(x) and sigmoid(-x), neither as a difference.
struct Sigmoids {
  F of_x, of_minus_x;
};
INVAR_INLINE Sigmoids sigmoids(F x) {
  F e = lanes::exp(neg(abs(x)));
  F large = sigmoid_of_exp(e), small = mul(e, large);
  M negative = lt(x, zero());
  return {select(negative, small, large), select(negative, large, small)};
}

// These take the operand x.
INVAR_INLINE F silu_backward(F grad, F x) {
  Sigmoids s = sigmoids(x);
  return mul(grad, mul(s.of_x, fma(x, s.of_minus_x, set1(1.0f))));
}
// Within 20 of 0; beyond, the derivatives of gelu are 0 and 1.
INVAR_INLINE F near_zero(F x) {
  return at_least(at_most(x, 20.0f), -20.0f);
}
// The distribution function of z and z times its density, exp(-z^2 / 2) / sqrt(2 pi). What rounding
// z^2 costs exp is made good; what rounding z / sqrt(2) costs erfc is small against the density.
INVAR_INLINE F gelu_backward(F grad, F x) {
  F z = near_zero(x);
  F q = mul(z, z), r = fma(z, z, neg(q));
  F e = lanes::exp(mul(set1(-0.5f), q));
  F density = fma(mul(set1(-0.5f), r), e, e);
  F cdf = mul(set1(0.5f), from_num::erfc(mul(z, set1(-0x1.6a09e6p-1f))));
  return mul(grad, fma(mul(z, set1(0x1.988454p-2f)), density, cdf));
}
// s + z s' with s = sigmoid(v), v = z (a + b z^2), v' = a + 3 b z^2; a, b: gelu_tanh().
INVAR_INLINE F gelu_tanh_backward(F grad, F x) {
  F z = near_zero(x), q = mul(z, z);
  Sigmoids s = sigmoids(mul(z, fma(q, set1(0x1.2444f2p-4f), set1(0x1.988454p+0f))));
  F d = fma(q, set1(0x1.b6676cp-3f), set1(0x1.988454p+0f));
  return mul(grad, fma(mul(z, d), mul(s.of_x, s.of_minus_x), s.of_x));
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
