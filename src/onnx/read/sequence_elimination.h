// Eliminates sequence values (lists of tensors), which the compiler does not support.
#pragma once

#include "onnx/onnx.h"

namespace invar::onnx {

// Replaces nodes that read elements of statically known sequences by nodes on those elements
// (spec/onnx.md onnx.26). Others stay as they are.
void eliminate_sequences(Graph&);

}  // namespace invar::onnx
