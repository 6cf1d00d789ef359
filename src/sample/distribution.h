// The sampling distribution as integer weights of the tokens that may be drawn (spec/sampling.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "sample/sample.h"

namespace invar::sample {

// RNE(2^40 x) of a float in [0, 1]. sampling.1.
uint64_t fixed40(float x);

// sampling.6: of a logit beside the greatest one.
uint64_t weight_of(float logit, float greatest, float temperature);

// The first `count` tokens in the order of sampling.7; fewer where fewer logits are above -Inf.
std::vector<int32_t> most_likely(std::span<const float> logits, size_t count);

struct Choice {
  int32_t token;
  uint64_t weight;
};

// The tokens that remain after temperature, top-k, top-p, min-p and epsilon cutoff, ascending, each
// of weight > 0; never empty. sampling.5 to sampling.8, sampling.18, sampling.19. No processor
// acts.
Result<std::vector<Choice>> distribution(std::span<const float> logits, const Params& params);

// The token that the random number u draws. sampling.9. The sum of the weights is below 2^64.
int32_t draw(std::span<const Choice> choices, uint64_t u);

}  // namespace invar::sample
