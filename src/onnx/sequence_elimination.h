// Eliminates sequence values (lists of tensors), which the compiler does not support.
#pragma once

#include <optional>

#include "onnx/onnx.h"

namespace invar::onnx {

// The graph with nodes on elements in the place of nodes that read elements of statically known
// sequences (spec/onnx.md onnx.26). Others stay as they are. Nothing if it has no sequences.
std::optional<Graph> without_sequences(const Graph&);

}  // namespace invar::onnx
