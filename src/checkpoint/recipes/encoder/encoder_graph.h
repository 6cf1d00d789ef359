// Builds the ONNX graph of an encoder: its vectors, or its scores where it has a classifier.
#pragma once

#include "checkpoint/folder.h"
#include "checkpoint/recipes/encoder/encoder.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

// Inputs: input_ids, i64 [batch, seq], and with a classifier token_type_ids where the model has
// more than one type. Output: `embedding`, f32 [batch, size]; with a classifier `logits`, f32
// [batch, labels], and `scores` where they are activated. Errors name a tensor that is missing, of
// another shape or type, or without a place in the model.
Result<onnx::Graph> encoder_graph(const Encoder&, const Checkpoint&);

}  // namespace invar::checkpoint
