// Shared by the rules of layernorm and rmsnorm.
#include "compiler/lowering/builders/normalization.h"

namespace invar::compiler {

bool result_is_used(const NodeView& node, unsigned result) {
  Operation* op = node.out(0).getDefiningOp();
  return result < op->getNumResults() && !op->getResult(result).use_empty();
}

Result<Value> residual_sum(NodeView& node, unsigned bias) {
  INVAR_TRY(Value sum, node.make<AddOp>({node.in(0), node.in(1)}));
  if (node.has(bias)) {
    INVAR_TRY(Value biased, node.make<AddOp>({sum, node.in(bias)}));
    sum = biased;
  }
  if (node.shape(2).size() != 1) return not_covered("a scale that is not of rank 1");
  node.replace(3, sum);
  return sum;
}

}  // namespace invar::compiler
