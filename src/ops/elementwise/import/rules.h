// Shared declarations of the import code of this room.
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

// Operand 1 of an operator of two, in a shape that broadcasts to that of operand 0 as NumPy does.
// Before opset 7 the shapes are equal, or `broadcast` is 1, and the dimensions of operand 1 are
// those of operand 0 from `axis` on (absent: the last ones). Refuses other operands and attributes.
Result<Value> second_operand(NodeView& node);
// Before opset 7 such an operator never broadcasts operand 0.
Status check_second_operand(NodeView& node, Value result);

// The rules of each file.
void import_dim_propagation(RuleRegistry&);
void import_table(RuleRegistry&);
void import_window_functions(RuleRegistry&);

}  // namespace invar::compiler
