// Layer normalization (choices.6): with d = x - mean(x), d / sqrt(mean(d^2) + epsilon) * weight +
// bias.
#include "compiler/passes/idiom_recognition/norm.h"

namespace invar::compiler {

bool recognize_layernorm(Operation* anchor, DerivedValueCache& context) {
  const std::optional<Norm> norm = match_norm(anchor);
  auto centred = norm ? norm->x.getDefiningOp<SubOp>() : SubOp();
  auto mean = centred ? centred.getB().getDefiningOp<ReduceMeanOp>() : ReduceMeanOp();
  if (!mean || mean.getX() != centred.getA() || !reduces_last_dims(mean) ||
      mean.getAxes() != norm->mean.getAxes())
    return false;
  Value out = norm->out, scale = match_scale(out, *norm);
  if (!scale) return false;
  SmallVector<Value> operands = {mean.getX(), scale};
  if (Value bias = match_parameter<AddOp>(out, *norm)) operands.push_back(bias);
  return replace<LayernormOp>(context, out, operands,
                              attribute(anchor->getContext(), "epsilon", norm->epsilon));
}

}  // namespace invar::compiler
