#include "sample/logprobs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
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

// 2^(j/64), each to 2^-46: 64 roundings.
constexpr std::array<double, 64> kPowers = [] {
  std::array<double, 64> all{};
  double power = 1;
  for (double& p : all) p = power, power *= 0x1.02c9a3e778061p+0;
  return all;
}();

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

// Binary64 without fma is right to
// 2^-45: e^d = 2^(n/64) e^r, |r| < 2^-7.5, of whose series the first term left out is below 2^-54.
// Where the result could round otherwise within 2^-42, the reference decides.
float stored_exp(float d) {
  if (d < -88.0f) return 0;  // log(2^-126) is -87.33
  if (!(d > -87.0f)) return num::canonicalize(num::reference::exp(d));
  constexpr double kRound = 0x1.8p52;
  const double t = d * 0x1.71547652b82fep+6 + kRound, n = t - kRound;
  const double r = (d - n * 0x1.62e42fefa0000p-7) - n * 0x1.cf79abc9e3b3ap-46;
  const double series = 1 + r * (1 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120)))));
  const auto steps = std::bit_cast<int64_t>(t) - std::bit_cast<int64_t>(kRound);
  const double scale = std::bit_cast<double>((1023 + (steps >> 6)) << 52);
  const double y = series * kPowers[steps & 63] * scale;
  const auto rest = static_cast<int32_t>(std::bit_cast<uint64_t>(y) & 0x1fffffff);
  if (std::abs(rest - 0x10000000) < 1 << 11) return num::reference::exp(d);
  return static_cast<float>(y);
}

RowLogprobs::RowLogprobs(std::span<const float> logits) : logits_(logits) {
  const num::ArithmeticEnv env;
  greatest_ = greatest_of(logits);
  const auto weight = [&](int64_t i) { return stored_exp(logits[static_cast<size_t>(i)] - greatest_); };
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
