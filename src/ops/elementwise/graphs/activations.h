// Activation functions: elementwise.9 - elementwise.12. Each line is one rounding; a graph
// applies the store rule only where it calls flush_subnormal().
#pragma once
#include "num/functions_ff.h"
#include "num/pow/lanes.h"
#include "ops/elementwise/graphs/arithmetic.h"

namespace invar::ops::INVAR_ISA_NS::graph {

namespace lanes = num::INVAR_ISA_NS;

// Chooses the faster one of two sequences with the same bits.
namespace from_num {
#define INVAR_FROM_NUM(f)                                       \
  INVAR_INLINE F f(F x) {                                       \
    return lanes::kFloatFloat ? lanes::f##_ff(x) : lanes::f(x); \
  }
INVAR_FUNCTIONS(INVAR_FROM_NUM)
#undef INVAR_FROM_NUM
}  // namespace from_num
using namespace from_num;
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

// elementwise.10: functions of the exponential.
INVAR_INLINE F sigmoid_of_exp(F e) {
  return div(set1(1.0f), add(set1(1.0f), e));
}
INVAR_INLINE F sigmoid_graph(F x) {
  return sigmoid_of_exp(lanes::exp(neg(x)));
}
// formats.5 for a nonnegative number; NaN stays NaN.
INVAR_INLINE F flush_subnormal(F x) {
  return select(lt(x, set1(0x1p-126f)), zero(), x);
}
INVAR_INLINE F swish(F x, float alpha) {
  return mul(x, flush_subnormal(sigmoid_graph(mul(set1(alpha), x))));
}
// tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), e = exp(x); from x = 20 on it is 1 to the last
// bit.
INVAR_INLINE F mish(F x) {
  F e = lanes::exp(at_most(x, 20.0f));
  F n = mul(e, add(e, set1(2.0f)));
  return mul(x, div(n, add(n, set1(2.0f))));
}
// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation for
// negative x. Constants: 2 sqrt(2/pi) and 0.08943 sqrt(2/pi) to nearest.
INVAR_INLINE F gelu_tanh(F x) {
  F p = fma(mul(x, x), set1(0x1.2444f2p-4f), set1(0x1.988454p+0f));
  return div(x, add(set1(1.0f), lanes::exp(neg(mul(x, p)))));
}

// elementwise.12: functions of other functions.
INVAR_INLINE F elu(F x, float alpha) {
  return select(lt(x, zero()), mul(set1(alpha), from_num::expm1(x)), x);
}
INVAR_INLINE F selu(F x, float alpha, float gamma) {
  return mul(set1(gamma), elu(x, alpha));
}
INVAR_INLINE F celu(F x, float alpha) {
  return select(lt(x, zero()), mul(set1(alpha), from_num::expm1(div(x, set1(alpha)))), x);
}
// x/2 erfc(-x / sqrt(2)). For x < 0 the relative condition of erfc at t = -x / sqrt(2) is 2 t^2 and
// more, so the rounding error r of t is corrected: erfc(t + r) = erfc(t) (1 - r m), m = 2/sqrt(pi)
// exp(-t^2) / erfc(t), approximated well enough by t + sqrt(t^2 + 4/pi). Below -20 the result is
// -0. Constants: 1/sqrt(2) in two parts, 4/pi, to nearest. Largest error against x/2 erfc(-x /
// sqrt(2)) in binary64 over all inputs: 2.6 ulp; 7.2 below -12.9, where erfc is subnormal.
INVAR_INLINE F gelu_graph(F x) {
  F y = neg(at_least(x, -20.0f)), c = set1(0x1.6a09e6p-1f);
  F t = mul(y, c);
  F r = fma(y, set1(0x1.9fcef4p-27f), fma(y, c, neg(t)));
  F m = add(t, lanes::sqrt(fma(t, t, set1(0x1.45f306p+0f))));
  F e = lanes::erfc(t);
  F lost = select(lt(x, zero()), mul(r, m), zero());
  return mul(mul(set1(0.5f), x), fma(neg(lost), e, e));
}
// log(1 + exp(x)) without overflow and without cancellation.
INVAR_INLINE F softplus(F x) {
  return add(at_least(x, 0.0f), from_num::log1p(lanes::exp(neg(abs(x)))));
}
// log(sigmoid(x)) also where sigmoid is 0 or 1.
INVAR_INLINE F logsigmoid(F x) {
  return neg(softplus(neg(x)));
}
INVAR_INLINE F sinc(F x) {
  F quotient = div(from_num::sinpi(x), mul(x, set1(0x1.921fb6p+1f)));
  return select(lt(abs(x), set1(0x1p-13f)), set1(1.0f), quotient);
}
INVAR_INLINE F entr(F x) {
  F edge = select(eq(x, zero()), zero(), set1(-__builtin_inff()));
  return select(less_equal(x, zero()), edge, mul(neg(x), from_num::log(x)));
}

// Functions whose fast path has a normal result, so that the store rule is skipped. Same values.
INVAR_INLINE Canonical tanh(F x) {
  return {lanes::tanh_as<true>(x)};
}
INVAR_INLINE Canonical erf(F x) {
  return {lanes::erf_as<true>(x)};
}
INVAR_INLINE Canonical erfc(F x) {
  return {lanes::erfc_as<true>(x)};
}
// graph(exp(u)), which equals fast(exp(u)) and is normal for |u| between low and kExpNormal, and
// for u = 0.
template <class Fast, class Graph>
INVAR_INLINE Canonical by_exp(F u, float low, Fast fast, Graph graph) {
  if constexpr (lanes::kTable == 1) return Canonical{canonicalize(graph(lanes::exp(u)))};
  lanes::RoundedResult e = lanes::round_if_certain(lanes::exp_fast(u));
  M range = low == 0 ? lt(abs(u), set1(lanes::kExpNormal)) : lanes::inside(u, low, lanes::kExpNormal);
  M sure = both(e.sure, range);
  if (__builtin_expect(all(sure), true)) return Canonical{fast(e.y)};
  M zeros = lt(u, set1(lanes::kExpZero));
  sure = either(either(sure, zeros), both(e.sure, eq(u, zero())));
  return Canonical{
      canonicalize(graph(lanes::resolve_uncertain<lanes::exp_wide>(u, select(zeros, zero(), e.y), sure)))};
}
INVAR_INLINE Canonical exp(F x) {
  auto same = [](F e) __attribute__((always_inline)) {
    return e;
  };
  return by_exp(x, 0, same, same);
}
INVAR_INLINE Canonical sigmoid(F x) {
  return by_exp(neg(x), 0, sigmoid_of_exp, sigmoid_of_exp);
}
INVAR_INLINE Canonical silu(F x) {
  return by_exp(
      neg(x), 0x1p-100f, [=](F e) __attribute__((always_inline)) { return mul(x, sigmoid_of_exp(e)); },
      [=](F e) __attribute__((always_inline)) { return mul(x, flush_subnormal(sigmoid_of_exp(e))); });
}
// The graph of gelu_graph() with erfc_of_minus(u), u = -t. Every intermediate value equals the one
// there or its negation, and negation does not change how a value is rounded.
INVAR_INLINE lanes::RoundedResult gelu_if_certain(F x) {
  F c = set1(-0x1.6a09e6p-1f), u = mul(x, set1(0x1.6a09e6p-1f));
  lanes::RoundedResult e = lanes::erfc_of_minus(u);
  F r = fma(x, set1(-0x1.9fcef4p-27f), fma(x, c, u));
  F minus_m = sub(u, lanes::sqrt(fma(u, u, set1(0x1.45f306p+0f))));
  F minus_lost = select(lt(x, zero()), mul(r, minus_m), zero());
  F y = mul(mul(set1(0.5f), x), fma(minus_lost, e.y, e.y));
  return {y, both(e.sure, lanes::inside(x, 0x1p-100f, 5.63f))};
}
INVAR_INLINE Canonical gelu(F x) {
  if constexpr (!lanes::kHasTableRows) return {canonicalize(gelu_graph(x))};
  lanes::RoundedResult v = gelu_if_certain(x);
  if (__builtin_expect(all(v.sure), true)) return {v.y};
  M large = lt(set1(5.65f), x);  // erfc is 2
  M sure = either(v.sure, either(large, eq(x, zero())));
  return {canonicalize(lanes::resolve_uncertain<gelu_graph>(x, select(large, x, v.y), sure))};
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
