// The model recipe of LlamaForCausalLM: config + tensors by reference -> ONNX graph (docs/decisions.md,
// spec/onnx.md).
#pragma once

#include "onnx/checkpoint.h"
#include "onnx/config.h"
#include "onnx/onnx.h"

namespace invar::onnx {

// Tensors that are missing, of another shape or type than the config asks, or that no part of the recipe uses
// are errors by name.
Result<Graph> llama_graph(const LlamaConfig& config, const Checkpoint& checkpoint);

}  // namespace invar::onnx
