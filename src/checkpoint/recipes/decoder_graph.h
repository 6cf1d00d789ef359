// The ONNX graph of a decoder-only language model (spec/llama.md, spec/decoder.md).
#pragma once

#include "checkpoint/folder.h"
#include "checkpoint/recipes/decoder.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

// Errors name a tensor that is missing, unused, or of another shape or type than the config
// requires.
Result<onnx::Graph> decoder_graph(const Decoder& decoder, const Checkpoint& checkpoint);

// The graph of the head that predicts the token after the next one, if the checkpoint has it: a
// layer that reads the next token and the state that the decoder of `decoder` makes the logits of.
// Its inputs are those of decoder_graph and hidden_states, f32 [batch, seq, hidden_size]. It serves
// drafts alone, so no receipt knows its program.
Result<onnx::Graph> prediction_head_graph(const Decoder& decoder, const Checkpoint& checkpoint);

}  // namespace invar::checkpoint
