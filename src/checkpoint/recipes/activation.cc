#include "checkpoint/recipes/activation.h"

namespace invar::checkpoint {

std::string activated(GraphBuilder& b, Activation activation, const std::string& p, const std::string& x) {
  switch (activation) {
    case Activation::silu: return b.node("Mul", p + "silu", {x, b.node("Sigmoid", p + "sigmoid", {x})});
    case Activation::gelu: return b.node("Gelu", p + "gelu", {x});
    case Activation::gelu_tanh:
      return b.node("Gelu", p + "gelu", {x}, {{"approximate", std::string("tanh")}});
    case Activation::relu: return b.node("Relu", p + "relu", {x});
    case Activation::relu_squared: break;
  }
  const std::string y = b.node("Relu", p + "relu", {x});
  return b.node("Mul", p + "squared", {y, y});
}

}  // namespace invar::checkpoint
