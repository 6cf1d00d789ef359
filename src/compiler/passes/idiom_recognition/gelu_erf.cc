// GELU with erf (choices.7): x / 2 * (1 + erf(x / sqrt(2))).
#include "compiler/passes/idiom_recognition/gelu.h"

namespace invar::compiler {

bool recognize_gelu_erf(Operation* anchor, DerivedValueCache& context) {
  auto erf = dyn_cast<ErfOp>(anchor);
  if (!erf) return false;
  constexpr float kRoot = 0x1.6a09e6p0f, kInverse = 0x1.6a09e6p-1f;  // sqrt(2), 1 / sqrt(2) as binary32
  const ScalarOp product = match_scalar_op<MulOp>(erf.getX()),
                 quotient = match_scalar_op<DivOp>(erf.getX(), 1);
  Value x = product && product.scalar == kInverse  ? product.x
            : quotient && quotient.scalar == kRoot ? quotient.x
                                                   : Value();
  Value out = x ? match_gelu_product(erf.getOut(), x) : Value();
  return out && replace<GeluOp>(context, out, x);
}

}  // namespace invar::compiler
