// The inputs of a decoder that a session feeds by their names (plan.19).
#pragma once

#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::run {

struct DecoderInput {
  enum class Kind {
    ids,        // the tokens
    positions,  // 0, 1, ...
    mask,       // 1 for each token
    hidden,     // rows of another decoder, of the tokens (Session::feed_hidden)
    past,       // keys and values of no token
    lengths,    // of the sources of sequences (plan.22)
    source      // what the encoder made of them
  };
  int value;  // of the plan
  Kind kind;
};
// not_covered: an input of another name; bad_input: none for tokens.
Result<std::vector<DecoderInput>> decoder_inputs(const plan::Plan&);
// Whether the program must be given the whole sequence: it takes a mask, or past keys and values.
bool takes_whole_sequence(const std::vector<DecoderInput>&);

}  // namespace invar::run
