// The ONNX graph of a decoder-only language model (spec/llama.md, spec/decoder.md).
#pragma once

#include "checkpoint/folder.h"
#include "checkpoint/recipes/decoder.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

// Errors name a tensor that is missing, unused, or of another shape or type than the config
// requires.
Result<onnx::Graph> decoder_graph(const Decoder& decoder, const Checkpoint& checkpoint);

}  // namespace invar::checkpoint
