// Shared by the rules of layernorm and rmsnorm: the scale's shape and the residual sum of the Skip
// variants.
#pragma once
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

// Whether the node has this result and it has uses.
bool result_is_used(const NodeView&, unsigned result);
// Checks that the scale has the shape of the innermost dimensions of x.
LogicalResult check_scale_shape(std::optional<Location>, const Shape& x, const Shape& weight);
// The results of the gradients of x, and of the weight, which has the dimensions of x from `axis`
// on.
LogicalResult infer_norm_backward(std::optional<Location>, Type grad, Type x, Type weight,
                                  SmallVectorImpl<Type>& out);
LogicalResult infer_norm_backward_weight(std::optional<Location>, Type grad, Type x, int64_t axis,
                                         SmallVectorImpl<Type>& out);
// (operand 0 + operand 1) + bias, if the node has the operand `bias`; also result 3.
Result<Value> residual_sum(NodeView&, unsigned bias);

}  // namespace invar::compiler
