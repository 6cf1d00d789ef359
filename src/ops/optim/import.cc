// Type inference of steps of optimisers. No ONNX node becomes one.
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
namespace {

// Operands of one length and the scalars -> [results, length].
LogicalResult infer_step(std::optional<Location> loc, ValueRange in, int64_t scalars, int64_t results,
                         SmallVectorImpl<Type>& out) {
  const Shape first = shape_of(in[0].getType()), last = shape_of(in.back().getType());
  if (first.size() != 1) return mismatch(loc, "parameters of one dimension are covered");
  for (Value v : in.drop_back())
    if (shape_of(v.getType()) != first)
      return mismatch(loc, "gradients and state have the parameters' shape");
  if (last.size() != 1 || (last[0].constant() && last[0].value != scalars))
    return mismatch(loc, "the scalars are not " + std::to_string(scalars) + " numbers");
  out.push_back(tensor_of({Dim::of(results), first[0]}, getElementTypeOrSelf(in[0].getType())));
  return success();
}

}  // namespace

#define INVAR_STEP(Op, scalars, results)                                                    \
  LogicalResult Op::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op, \
                                     SmallVectorImpl<Type>& out) {                          \
    return infer_step(loc, op.getOperands(), scalars, results, out);                        \
  }
INVAR_STEP(SgdStepOp, 2, 1)
INVAR_STEP(MomentumStepOp, 4, 2)
INVAR_STEP(AdamStepOp, 8, 3)
INVAR_STEP(AmsgradStepOp, 8, 3)
INVAR_STEP(LionStepOp, 4, 2)

void import_optim(RuleRegistry&) {}

}  // namespace invar::compiler
