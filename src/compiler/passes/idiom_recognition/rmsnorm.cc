// choices.5: x / sqrt(mean(x^2) + epsilon) * weight.
#include "compiler/passes/idiom_recognition/norm.h"

namespace invar::compiler {

bool recognize_rmsnorm(Operation* anchor, IdiomContext&) {
  const std::optional<Norm> norm = norm_at(anchor);
  if (!norm) return false;
  Value out = norm->out, scale = scale_of(out, *norm);
  return scale &&
         replace<RmsnormOp>(out, {norm->x, scale}, attribute(anchor->getContext(), "epsilon", norm->epsilon));
}

}  // namespace invar::compiler
