// One vector of the vectors of all tokens: pooling and normalization of sentence-transformers
// (spec/encoder.md encoder.8).
#pragma once

#include <string>

#include "checkpoint/recipes/graph_builder.h"
#include "checkpoint/sentence.h"

namespace invar::checkpoint {

// x: [batch, seq, size] -> [batch, size]. `length` is the number of tokens, an i64 scalar.
std::string pooled(GraphBuilder&, const std::string& mode, const std::string& x, const std::string& length);
// All modes of the config one behind the other, normalized where it says so.
std::string sentence_vector(GraphBuilder&, const SentenceConfig&, const std::string& x,
                            const std::string& length);

}  // namespace invar::checkpoint
