// choices.6: with d = x - mean(x), d / sqrt(mean(d^2) + epsilon) * weight + bias.
#include "compiler/passes/idiom_recognition/norm.h"

namespace invar::compiler {

bool recognize_layernorm(Operation* anchor, IdiomContext&) {
  const std::optional<Norm> norm = norm_at(anchor);
  auto centred = norm ? norm->x.getDefiningOp<SubOp>() : SubOp();
  auto mean = centred ? centred.getB().getDefiningOp<ReduceMeanOp>() : ReduceMeanOp();
  if (!mean || mean.getX() != centred.getA() || !over_last(mean) || mean.getAxes() != norm->mean.getAxes())
    return false;
  Value out = norm->out, scale = scale_of(out, *norm);
  if (!scale) return false;
  SmallVector<Value> operands = {mean.getX(), scale};
  if (Value bias = applied<AddOp>(out, *norm)) operands.push_back(bias);
  return replace<LayernormOp>(out, operands, attribute(anchor->getContext(), "epsilon", norm->epsilon));
}

}  // namespace invar::compiler
