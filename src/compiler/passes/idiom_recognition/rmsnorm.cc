// RMS normalization (choices.5): x / sqrt(mean(x^2) + epsilon) * weight.
#include "compiler/passes/idiom_recognition/norm.h"

namespace invar::compiler {

bool recognize_rmsnorm(Operation* anchor, DerivedValueCache& context) {
  const std::optional<Norm> norm = match_norm(anchor);
  if (!norm) return false;
  Value out = norm->out, scale = match_scale(out, *norm);
  return scale && replace<RmsnormOp>(context, out, {norm->x, scale},
                                     attribute(anchor->getContext(), "epsilon", norm->epsilon));
}

}  // namespace invar::compiler
