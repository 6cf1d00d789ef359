// Type inference of dropout. No ONNX operator is lowered here: those that draw random numbers do
// not say which.
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

LogicalResult RandomDropoutOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                                SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}

void import_random(RuleRegistry&) {}

}  // namespace invar::compiler
