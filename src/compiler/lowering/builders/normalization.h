// What the rules of normalizations share.
#pragma once
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

// The node has this result, and the graph reads it.
bool wanted(const Node&, unsigned result);
// The shape of a weight is that of the last dimensions of x, which it has.
LogicalResult covers(std::optional<Location>, const Shape& x, const Shape& weight);
// For nodes of operands `in`, `skip` and, where it is there, `bias`: (in + skip) + bias, result 3.
Result<Value> skipped(Node&, unsigned bias);

}  // namespace invar::compiler
