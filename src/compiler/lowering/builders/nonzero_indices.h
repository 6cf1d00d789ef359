// Stream compaction: the indices of the true elements of a mask, whose number is known at run time
// only (onnx.22).
#pragma once

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

// x as a tensor of one dimension.
Result<Value> flatten_to_1d(NodeView&, Value x);

struct NonzeroIndices {
  Dim count;
  Value index;  // i64 [count], ascending
};
// The indices of the true elements of flags, of one dimension. Their count becomes a symbol.
Result<NonzeroIndices> nonzero_indices(NodeView&, Value flags);

}  // namespace invar::compiler
