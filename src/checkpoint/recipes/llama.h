// The model recipe of LlamaForCausalLM: config + tensors by reference -> ONNX graph (docs/decisions.md,
// spec/onnx.md).
#pragma once

#include "checkpoint/folder.h"
#include "checkpoint/config.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

// Tensors that are missing, of another shape or type than the config asks, or that no part of the recipe uses
// are errors by name.
Result<onnx::Graph> llama_graph(const LlamaConfig& config, const Checkpoint& checkpoint);

}  // namespace invar::checkpoint
