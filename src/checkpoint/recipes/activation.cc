#include "checkpoint/recipes/activation.h"

#include <cmath>

#include "num/env.h"

namespace invar::checkpoint {
namespace {

// Huang and Schlag, arXiv 2411.13010, with parameters of the checkpoint (decoder.34). Elu of a
// negative number is expm1.
std::string xielu(GraphBuilder& b, const std::string& p, const std::string& x) {
  const auto parameter = [&](const char* name, std::vector<int64_t> shape) {
    return b.weight(p + "act_fn." + name, shape);
  };
  const std::string beta = parameter("beta", {}), eps = parameter("eps", {});
  const std::string alpha_p = b.node("Softplus", p + "alpha_p", {parameter("alpha_p", {1})});
  const std::string alpha_n = b.node(
      "Add", p + "alpha_n", {beta, b.node("Softplus", p + "alpha_n.soft", {parameter("alpha_n", {1})})});
  const std::string linear = b.node("Mul", p + "linear", {beta, x});
  const std::string squared = b.node("Mul", p + "squared", {b.node("Mul", p + "scaled", {alpha_p, x}), x});
  const std::string curve = b.node("Elu", p + "elu", {b.node("Min", p + "below", {x, eps})});
  const std::string bent = b.node("Mul", p + "bent", {b.node("Sub", p + "less", {curve, x}), alpha_n});
  const std::string zero = b.constant("zero_f32", std::vector{0.0f});
  return b.node(
      "Where", p + "xielu",
      {b.node("Greater", p + "positive", {x, zero}), b.node("Add", p + "above_zero", {squared, linear}),
       b.node("Add", p + "below_zero", {bent, linear})});
}

}  // namespace

// Bisection of the part between 0 and x: the density at x times x + x^3 / 3 + x^5 / 15 + ..., and
// the density from the series of exp(x^2 / 2). All terms are positive, in binary64.
float normal_quantile(double part) {
  num::mend_arithmetic_env();
  constexpr double kRootOfTwoPi = 0x1.40d931ff62706p+1;
  const double wanted = part < 0.5 ? 0.5 - part : part - 0.5;
  double low = 0, high = 16;
  for (int step = 0; step < 64; ++step) {
    const double x = low + (high - low) / 2, half = x * x / 2;
    double power = 1, growth = 1, term = x, sum = x;
    for (int n = 1; n < 600; ++n) {
      power = power * half / n, growth += power;
      term = term * (x * x) / (2 * n + 1), sum += term;
    }
    (sum / growth / kRootOfTwoPi < wanted ? low : high) = x;
  }
  return static_cast<float>(part < 0.5 ? -low : low);
}

std::string activated(GraphBuilder& b, Activation activation, const std::string& p, const std::string& x) {
  switch (activation) {
    case Activation::silu: return b.node("Mul", p + "silu", {x, b.node("Sigmoid", p + "sigmoid", {x})});
    case Activation::gelu: return b.node("Gelu", p + "gelu", {x});
    case Activation::gelu_tanh:
      return b.node("Gelu", p + "gelu", {x}, {{"approximate", std::string("tanh")}});
    case Activation::relu: return b.node("Relu", p + "relu", {x});
    case Activation::xielu: return xielu(b, p, x);
    case Activation::relu_squared: break;
  }
  const std::string y = b.node("Relu", p + "relu", {x});
  return b.node("Mul", p + "squared", {y, y});
}

}  // namespace invar::checkpoint
