// Inputs that are lists of tensors.
#pragma once

#include "onnx/onnx.h"

namespace invar::onnx {

// Makes the list an input for each of its `length` tensors.
Status expand_list(Graph&, const std::string& name, int64_t length);

}  // namespace invar::onnx
