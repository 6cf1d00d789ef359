#include "sample/sample.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
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

// sampling.7 as one integer: greater keys come first. NaN and -Inf, which never do, have the least logit part, 0.
uint32_t rank(float logit) {
  if (!(logit > -kInf)) return 0;
  const auto u = std::bit_cast<uint32_t>(logit + 0.0f);  // -0 equals +0
  return u >> 31 ? ~u : u | 0x80000000;
}
uint64_t key(uint32_t rank, size_t token) {
  return uint64_t{rank} << 32 | (UINT32_MAX - token);
}
int32_t token_of(uint64_t key) {
  return static_cast<int32_t>(UINT32_MAX - static_cast<uint32_t>(key));
}
// The first `count` of the keys in order, in front, themselves in no order.
void to_front(std::vector<uint64_t>& keys, size_t from, size_t count) {
  if (from + count < keys.size())
    std::nth_element(keys.begin() + from, keys.begin() + from + count, keys.end(), std::greater<>());
}

// sampling.7: the tokens that remain of `count`. The least of the `count` greatest maxima of blocks is a bound that at least
// `count` logits reach, and mostly few more, so that little is left to select from.
std::vector<uint64_t> first_tokens(std::span<const float> logits, size_t count) {
  constexpr size_t kBlock = 16;
  std::vector<uint32_t> ranks(logits.size()), most((logits.size() + kBlock - 1) / kBlock, 0);
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = rank(logits[i]);
    most[i / kBlock] = std::max(most[i / kBlock], ranks[i]);
  }
  uint32_t bound = 1;
  if (count <= most.size()) {
    std::nth_element(most.begin(), most.begin() + (count - 1), most.end(), std::greater<>());
    bound = std::max(bound, most[count - 1]);
  }
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] >= bound) keys.push_back(key(ranks[i], i));
  to_front(keys, 0, count);
  if (keys.size() > count) keys.resize(count);
  return keys;
}

// sampling.8: keeps the shortest prefix of the order that holds the share top_p of the whole weight. The order is made
// piece by piece: mostly the first one is enough.
void keep_top_p(std::vector<Choice>& choices, std::span<const float> logits, float top_p) {
  std::vector<uint64_t> keys;
  std::vector<uint64_t> weight(logits.size());
  uint128 whole = 0, share = fixed40(top_p);
  for (const Choice& c : choices) {
    whole += c.weight;
    keys.push_back(key(rank(logits[c.token]), static_cast<size_t>(c.token)));
    weight[c.token] = c.weight;
  }
  uint128 sum = 0;
  size_t n = 0, ordered = 0;
  do {
    if (n == ordered) {
      const size_t piece = std::min(std::max<size_t>(64, 4 * ordered), keys.size() - ordered);
      to_front(keys, ordered, piece);
      std::sort(keys.begin() + ordered, keys.begin() + ordered + piece, std::greater<>());
      ordered += piece;
    }
    sum += weight[token_of(keys[n++])];
  } while (n < keys.size() && (sum << 40) < share * whole);
  choices.clear();
  for (size_t i = 0; i < n; ++i) choices.push_back({token_of(keys[i]), weight[token_of(keys[i])]});
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
  auto choose = [&](int32_t token) {
    if (const uint64_t w = weight(logits[token])) choices.push_back({token, w});
  };
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < logits.size()) {
    for (const uint64_t k : first_tokens(logits, static_cast<size_t>(params.top_k))) choose(token_of(k));
  } else {
    for (size_t i = 0; i < logits.size(); ++i) choose(static_cast<int32_t>(i));
    if (params.top_p == 1) return choices;  // in ascending order as they are
  }
  if (params.top_p < 1) keep_top_p(choices, logits, params.top_p);
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
