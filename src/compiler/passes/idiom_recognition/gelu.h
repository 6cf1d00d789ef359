// The part that both GELU idioms share: x / 2 * (1 + f) (choices.7, choices.8).
#pragma once
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {

// The product of x, 1/2 and 1 + f in any order and association, if nothing else reads f; else null.
inline Value match_gelu_product(Value f, Value x) {
  auto sum = only_user<AddOp>(f);
  if (!sum || !is_constant_equal_to(other_operand(sum, f), 1)) return {};
  Value v = sum.getOut();
  int halves = 0, times = 0;
  while (halves + times < 2) {
    SmallVector<Value> factors;
    if (auto product = only_user<MulOp>(v); product && product.getA() != product.getB()) {
      factors_of(other_operand(product, v), x, factors);
      v = product.getOut();
    } else if (auto quotient = only_user<DivOp>(v); quotient && is_constant_equal_to(quotient.getB(), 2)) {
      v = quotient.getOut(), ++halves;
    } else {
      return {};
    }
    for (Value factor : factors) {
      if (factor != x && !is_constant_equal_to(factor, 0.5f)) return {};
      ++(factor == x ? times : halves);
    }
  }
  return halves == 1 && times == 1 && same_shape(v, x) ? v : Value();
}

}  // namespace invar::compiler
