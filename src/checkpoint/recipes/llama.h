// Builds the ONNX graph of LlamaForCausalLM from its config and the tensors of a checkpoint
// (spec/llama.md).
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/folder.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

// Errors name a tensor that is missing, unused, or of another shape or type than the config
// requires.
Result<onnx::Graph> llama_graph(const LlamaConfig& config, const Checkpoint& checkpoint);

}  // namespace invar::checkpoint
