// Unique of elements that are known at run time only (onnx.22).
#pragma once

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

// Replaces the node Unique. With an axis, all other dimensions must be 1.
Status unique_dynamic(NodeView&, std::optional<int64_t> axis, bool sorted);

}  // namespace invar::compiler
