// Lists of tensors that a graph makes and takes apart again: what is known of them when it is read.
#pragma once

#include "onnx/onnx.h"

namespace invar::onnx {

// Nodes that take tensors out of lists become nodes on these tensors (spec/onnx.md onnx.26). Others stay as they are.
void take_apart_sequences(Graph&);

}  // namespace invar::onnx
