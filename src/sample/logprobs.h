// Log-probabilities of the model's own row of logits: temperature 1, before every processor
// (spec/sampling.md sampling.25). The same on every machine, of logits from a CPU or a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace invar::sample {

struct TokenLogprob {
  int32_t token;
  float logprob;  // at most 0, -Inf, or NaN where the row has NaN or +Inf
};

// Those of one row, which outlives it. The constructor reads all of it; of() is O(1).
class RowLogprobs {
 public:
  explicit RowLogprobs(std::span<const float> logits);
  // -Inf of a token without a logit.
  float of(int32_t token) const;
  // The `count` most likely tokens, greatest logit first, lowest id first among equal ones
  // (sampling.7); fewer where fewer logits are above -Inf.
  std::vector<TokenLogprob> top(size_t count) const;

 private:
  std::span<const float> logits_;
  float greatest_, log_sum_;
};

// Of one step: its token, and the most likely ones whether it is among them or not.
struct StepLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};
inline constexpr int32_t kMostLogprobs = 20;
StepLogprobs logprobs(std::span<const float> logits, int32_t token, int32_t top);

// softmax.2: e^d of d <= 0 or NaN, correctly rounded and stored.
float stored_exp(float d);

// As JSON (sampling.26): the shortest digits that read back as the same binary32 number; -Inf is
// -9999.0, NaN is null.
std::string json_logprob(float logprob);

}  // namespace invar::sample
