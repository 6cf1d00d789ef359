#include "sample/sample.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "num/env.h"
#include "num/reference.h"
#include "sample/distribution.h"
#include "sample/philox.h"

namespace invar::sample {
namespace {

__extension__ using uint128 = unsigned __int128;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr size_t kMaxVocab = (1 << 24) - 1;  // sampling.4: so that sums of weights stay below 2^64

std::string text(float x) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr};
}

// The token of the greatest logit, lowest index on ties. NaN and -Inf are never picked. sampling.5.
Result<int32_t> greatest(std::span<const float> logits) {
  if (logits.size() > kMaxVocab)
    return not_covered("sampling: " + std::to_string(logits.size()) +
                       " logits; at most 16777215 are covered");
  float max = -kInf;
  int32_t index = -1;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > max) max = logits[i], index = static_cast<int32_t>(i);  // false for NaN
  if (index < 0)
    return bad_input("sampling: no logit is above -Inf (" + std::to_string(logits.size()) +
                     " logits); check the model's weights");
  return index;
}

// sampling.8: keeps the shortest prefix of `order` that holds the share top_p of the whole weight.
void keep_top_p(std::vector<Choice>& order, float top_p) {
  uint128 whole = 0, share = fixed40(top_p);
  for (const Choice& c : order) whole += c.weight;
  uint128 sum = 0;
  size_t n = 0;
  do sum += order[n++].weight;
  while (n < order.size() && (sum << 40) < share * whole);
  order.resize(n);
}

}  // namespace

Status check(const Params& p) {
  if (!(p.temperature >= std::numeric_limits<float>::min() && p.temperature < kInf))
    return bad_input("temperature: " + text(p.temperature) +
                     " is not a number > 0 (use greedy decoding for 0)");
  if (p.top_k < 0) return bad_input("top_k: " + std::to_string(p.top_k) + " is negative; use 0 for no limit");
  if (!(p.top_p >= std::numeric_limits<float>::min() && p.top_p <= 1))
    return bad_input("top_p: " + text(p.top_p) + " is outside (0, 1]; use 1 for no limit");
  return {};
}

uint64_t fixed40(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x), exponent = bits >> 23;
  uint64_t mantissa = (bits & 0x7fffff) | 0x800000;  // x = mantissa * 2^(exponent - 150)
  if (exponent >= 110) return mantissa << (exponent - 110);
  uint32_t drop = 110 - exponent;
  if (drop > 24) return 0;  // below 2^-41; also zeros and subnormals
  uint64_t kept = mantissa >> drop, rest = mantissa & ((1u << drop) - 1), half = 1u << (drop - 1);
  return kept + (rest > half || (rest == half && kept % 2 == 1));
}

Result<std::vector<Choice>> distribution(std::span<const float> logits, const Params& params) {
  const num::ArithmeticEnv env;
  INVAR_TRY(const int32_t best, greatest(logits));
  const float max = logits[best];
  auto weight = [&](float l) -> uint64_t {
    if (l == max) return fixed40(1);           // also where max = +Inf
    float d = (l - max) / params.temperature;  // sampling.6: two IEEE operations
    return d > -28.5f ? fixed40(num::reference::exp(d))
                      : 0;  // exp(-28.5) < 2^-41: the weight is 0 anyway; also for NaN
  };
  std::vector<Choice> choices;
  const bool limited = params.top_k > 0 && static_cast<size_t>(params.top_k) < logits.size();
  auto before = [&](const Choice& a, const Choice& b) {  // sampling.7: the total order
    return logits[a.token] > logits[b.token] || (logits[a.token] == logits[b.token] && a.token < b.token);
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    uint64_t w = limited ? uint64_t{logits[i] > -kInf} : weight(logits[i]);
    if (w > 0) choices.push_back({static_cast<int32_t>(i), w});
  }
  if (limited) {
    if (static_cast<size_t>(params.top_k) < choices.size()) {
      std::nth_element(choices.begin(), choices.begin() + params.top_k, choices.end(), before);
      choices.resize(params.top_k);
    }
    for (Choice& c : choices) c.weight = weight(logits[c.token]);
    std::erase_if(choices, [](const Choice& c) { return c.weight == 0; });
  }
  if (params.top_p < 1) {
    std::sort(choices.begin(), choices.end(), before);
    keep_top_p(choices, params.top_p);
  }
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.token < b.token; });
  return choices;
}

int32_t draw(std::span<const Choice> choices, uint64_t u) {
  uint64_t total = 0;
  for (const Choice& c : choices) total += c.weight;
  const auto r = static_cast<uint64_t>(uint128{u} * total >> 64);
  uint64_t sum = 0;
  for (const Choice& c : choices)
    if ((sum += c.weight) > r) return c.token;
  return choices.back().token;  // not reached: r < total
}

Result<int32_t> pick(std::span<const float> logits, const Params& params, uint64_t position,
                     uint64_t stream) {
  INVAR_CHECK_OK(check(params));
  if (!params.do_sample) return greatest(logits);
  INVAR_TRY(const std::vector<Choice> choices, distribution(logits, params));
  return draw(choices, random_u64(params.seed, position, stream));
}

}  // namespace invar::sample
