// Argsort along an axis, for TopK, Unique and their like.
#pragma once

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

// The indices of the k first elements of f32, i32 or i64 along an axis; without k, of all elements.
Result<Value> argsort(NodeView&, Value x, int64_t axis, std::optional<int64_t> k, bool largest);

}  // namespace invar::compiler
