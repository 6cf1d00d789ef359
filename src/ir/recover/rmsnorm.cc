// choices.5: x / sqrt(mean(x^2) + epsilon) * weight.
#include "ir/recover/norm.h"

namespace invar::ir {

bool recover_rmsnorm(Operation* anchor, Recovery&) {
  const std::optional<Norm> norm = norm_at(anchor);
  if (!norm) return false;
  Value out = norm->out, scale = scale_of(out, *norm);
  return scale &&
         replace<RmsnormOp>(out, {norm->x, scale}, attribute(anchor->getContext(), "epsilon", norm->epsilon));
}

}  // namespace invar::ir
