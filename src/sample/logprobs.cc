#include "sample/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/decimal.h"
#include "num/convert/convert.h"
#include "num/env.h"
#include "num/reduce/reference.h"
#include "num/reference.h"
#include "sample/distribution.h"

namespace invar::sample {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// Of lesser numbers exp is subnormal, which is stored as +0: log(2^-126) is -87.33.
constexpr float kVanishes = -88.0f;

// softmax.1, but for the sign of a zero: where it would show, two weights are 1 and the log of
// their sum hides it.
float greatest_of(std::span<const float> logits) {
  float m = kMinusInfinity;
  for (const float l : logits) {
    if (std::isnan(l)) return l;
    m = std::max(m, l);
  }
  return m;
}

}  // namespace

RowLogprobs::RowLogprobs(std::span<const float> logits) : logits_(logits) {
  const num::ArithmeticEnv env;
  greatest_ = greatest_of(logits);
  const auto weight = [&](int64_t i) {  // softmax.2
    const float d = logits[static_cast<size_t>(i)] - greatest_;
    return d < kVanishes ? 0.0f : num::canonicalize(num::reference::exp(d));
  };
  const float sum = num::reference::row_sum_of(static_cast<int64_t>(logits.size()), weight);
  log_sum_ = num::reference::log(sum);
}

float RowLogprobs::of(int32_t token) const {
  const num::ArithmeticEnv env;
  if (token < 0 || static_cast<size_t>(token) >= logits_.size()) return kMinusInfinity;
  const float above = logits_[static_cast<size_t>(token)] - greatest_;
  return num::canonicalize(above - log_sum_);  // softmax.6
}

std::vector<TokenLogprob> RowLogprobs::top(size_t count) const {
  std::vector<TokenLogprob> all;
  for (const int32_t token : most_likely(logits_, count)) all.push_back({token, of(token)});
  return all;
}

StepLogprobs logprobs(std::span<const float> logits, int32_t token, int32_t top) {
  const RowLogprobs row(logits);
  return {{token, row.of(token)}, row.top(static_cast<size_t>(std::max(top, 0)))};
}

std::string json_logprob(float logprob) {
  if (std::isnan(logprob)) return "null";
  return logprob == kMinusInfinity ? "-9999.0" : shortest_text(logprob);
}

}  // namespace invar::sample
