// Shared by the rules of layernorm and rmsnorm: the residual sum of the Skip variants.
#pragma once
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

// Whether the node has this result and it has uses.
bool result_is_used(const NodeView&, unsigned result);
// (operand 0 + operand 1) + bias, if the node has the operand `bias`; also result 3.
Result<Value> residual_sum(NodeView&, unsigned bias);

}  // namespace invar::compiler
