// The ONNX graph of an encoder-decoder (spec/seq2seq.md).
#pragma once

#include "base/status.h"
#include "checkpoint/folder.h"
#include "checkpoint/recipes/seq2seq/seq2seq.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

// Inputs source_ids and source_lengths beside those of a decoder. A tensor that is missing, left
// over or of another shape is an error.
Result<onnx::Graph> seq2seq_graph(const Seq2Seq&, const Checkpoint&);

}  // namespace invar::checkpoint
