// Compares two profiles of a model: logits, losses, most likely tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "run/session.h"

namespace invar::generate {

struct Accuracy {
  int64_t sequences = 0, tokens = 0;
  double error = 0;       // of all logits: the norm of the difference by the norm of those of fp32
  double loss = 0;        // of fp32: mean of -log of the probability of each token behind the first
  double other_loss = 0;  // of the other profile
  int64_t agreeing = 0;   // positions whose most likely token is the same
};

// Both sessions are of one model and give the logits of every token; all in binary64, in one order.
// bad_input: a sequence of fewer than two tokens, or with a token outside of the vocabulary.
// done: how many sequences are computed.
Result<Accuracy> compare_accuracy(run::Session& fp32, run::Session& other,
                                  std::span<const std::vector<int32_t>> sequences,
                                  const std::function<void(int64_t done)>& done = {});

}  // namespace invar::generate
