// GELU with tanh (choices.8): x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
#include "compiler/passes/idiom_recognition/gelu.h"

namespace invar::compiler {
namespace {

constexpr float kRoot = 0x1.988454p-1f, kCube = 0x1.6e4e26p-5f;  // sqrt(2 / pi), 0.044715 as binary32

// Whether v is the product of `factor` and x to the power of `times`.
bool is_term(Value v, Value x, int times, float factor) {
  SmallVector<Value> factors;
  factors_of(v, x, factors);
  int numbers = 0;
  for (Value f : factors)
    if (f == x)
      --times;
    else if (is_constant_equal_to(f, factor))
      ++numbers;
    else
      return false;
  return times == 0 && numbers == 1;
}

// The x of sqrt(2 / pi) * (x + 0.044715 * x^3) or sqrt(2 / pi) * x * (1 + 0.044715 * x^2); null if
// v is neither.
Value match_tanh_argument(Value product) {
  SmallVector<Value> factors;
  factors_of(product, {}, factors);
  const auto root = llvm::find_if(factors, [](Value f) { return is_constant_equal_to(f, kRoot); });
  if (root == factors.end() || factors.size() > 3) return {};
  factors.erase(root);
  for (size_t i = 0; i < factors.size(); ++i) {
    auto sum = factors[i].getDefiningOp<AddOp>();
    for (int side = 0; sum && side < 2; ++side) {
      Value first = sum->getOperand(side), second = sum->getOperand(1 - side);
      if (factors.size() == 1 && is_term(second, first, 3, kCube)) return first;
      if (factors.size() == 2 && is_constant_equal_to(first, 1) && is_term(second, factors[1 - i], 2, kCube))
        return factors[1 - i];
    }
  }
  return {};
}

}  // namespace

bool recognize_gelu_tanh(Operation* anchor, DerivedValueCache& context) {
  auto tanh = dyn_cast<TanhOp>(anchor);
  Value x = tanh ? match_tanh_argument(tanh.getX()) : Value();
  Value out = x && same_shape(tanh.getX(), x) ? match_gelu_product(tanh.getOut(), x) : Value();
  return out && replace<GeluTanhOp>(context, out, x);
}

}  // namespace invar::compiler
