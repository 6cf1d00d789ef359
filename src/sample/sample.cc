// Sampling: temperature, top-k, top-p, min-p and the draw (spec/sampling.md).
#include "sample/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/text/decimal.h"
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
  return shortest_text(x);
}

// The order of sampling.7 as one integer, ascending. NaN and -Inf, which never remain, are the
// least.
constexpr int32_t kNever = INT32_MIN;
int32_t rank(float logit) {
  const auto u = std::bit_cast<int32_t>(logit + 0.0f);  // -0 equals +0
  return logit > -kInf ? u ^ (u >> 31 & INT32_MAX) : kNever;
}
// A rank and a token as one integer: greater keys come first.
uint64_t key(int32_t rank, size_t token) {
  return uint64_t{static_cast<uint32_t>(rank) ^ 0x80000000} << 32 | (UINT32_MAX - token);
}
int32_t token_of(uint64_t key) {
  return static_cast<int32_t>(UINT32_MAX - static_cast<uint32_t>(key));
}

// The greatest rank of each block of logits. This is one pass over all logits, after which only a
// few are read again. Floats that are numbers have the order of their ranks, and a NaN is never
// greater. Four maxima per block fill one vector on every processor.
constexpr size_t kBlock = 16;
std::vector<int32_t> block_maxima(std::span<const float> logits) {
  std::vector<int32_t> most((logits.size() + kBlock - 1) / kBlock, kNever);
  num::mend_arithmetic_env();  // memory may have come by a system call
  const size_t whole = logits.size() / kBlock;
  auto larger = [](float a, float b) { return a > b ? a : b; };  // one instruction, and no branch
  for (size_t b = 0; b < whole; ++b) {
    float m[4] = {-kInf, -kInf, -kInf, -kInf};
    for (size_t i = b * kBlock; i < (b + 1) * kBlock; i += 4)
      for (size_t j = 0; j < 4; ++j) m[j] = larger(logits[i + j], m[j]);
    most[b] = rank(larger(larger(m[0], m[1]), larger(m[2], m[3])));
  }
  for (size_t i = whole * kBlock; i < logits.size(); ++i)
    most[whole] = std::max(most[whole], rank(logits[i]));
  return most;
}

// The token of the greatest logit, lowest index on ties. sampling.5.
Result<int32_t> greatest(std::span<const float> logits, std::span<const int32_t> maxima) {
  if (logits.size() > kMaxVocab)
    return not_covered("sampling: " + std::to_string(logits.size()) +
                       " logits; at most 16777215 are covered");
  const auto most = std::max_element(maxima.begin(), maxima.end());  // the first of equal ones
  if (most == maxima.end() || *most == kNever)
    return bad_input("sampling: no logit is above -Inf (" + std::to_string(logits.size()) +
                     " logits): check the settings that exclude tokens, or the model's weights");
  size_t i = static_cast<size_t>(most - maxima.begin()) * kBlock;
  while (rank(logits[i]) != *most) ++i;
  return static_cast<int32_t>(i);
}

// The first `count` of the keys in order, in front, themselves in no order.
void to_front(std::vector<uint64_t>& keys, size_t from, size_t count) {
  if (from + count < keys.size())
    std::nth_element(keys.begin() + from, keys.begin() + from + count, keys.end(), std::greater<>());
}

// sampling.7: the `count` >= 1 tokens that remain, ascending. The least of the `count` greatest
// block maxima is a bound that at least `count` logits reach, and mostly few more, so few are left
// to select from.
std::vector<int32_t> first_tokens(std::span<const float> logits, std::span<const int32_t> maxima,
                                  size_t count) {
  int32_t bound = kNever + 1;
  if (count <= maxima.size()) {
    std::vector<int32_t> order(maxima.begin(), maxima.end());
    std::nth_element(order.begin(), order.begin() + (count - 1), order.end(), std::greater<>());
    bound = std::max(bound, order[count - 1]);
  }
  std::vector<uint64_t> keys;
  keys.reserve(std::min((count + 1) * kBlock, logits.size() + kBlock));
  for (size_t b = 0; b < maxima.size(); ++b) {
    if (maxima[b] < bound) continue;
    size_t kept = keys.size();  // branch-free, since the branch would be unpredictable
    keys.resize(kept + kBlock);
    for (size_t i = b * kBlock; i < std::min((b + 1) * kBlock, logits.size()); ++i) {
      const int32_t r = rank(logits[i]);
      keys[kept] = key(r, i);
      kept += r >= bound;
    }
    keys.resize(kept);
  }
  std::vector<int32_t> tokens;
  tokens.reserve(count);
  uint64_t last = 0;  // key that remains
  if (keys.size() > count) {
    std::vector<uint64_t> order = keys;
    std::nth_element(order.begin(), order.begin() + (count - 1), order.end(), std::greater<>());
    last = order[count - 1];
  }
  for (const uint64_t k : keys)
    if (k >= last) tokens.push_back(token_of(k));
  return tokens;
}

// sampling.8: keeps the shortest prefix of the order that has the share top_p of the total weight.
// Sorts piece by piece, since the first piece is mostly enough.
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
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.token < b.token; });
}

// sampling.18: the best token has weight 2^40, so it remains.
void keep_min_p(std::vector<Choice>& choices, float min_p) {
  std::erase_if(choices, [least = fixed40(min_p)](const Choice& c) { return c.weight < least; });
}

// sampling.19
void keep_epsilon(std::vector<Choice>& choices, float epsilon) {
  uint128 whole = 0;
  const uint128 share = fixed40(epsilon), best = fixed40(1);
  for (const Choice& c : choices) whole += c.weight;
  std::erase_if(
      choices, [&](const Choice& c) { return c.weight < best && (uint128{c.weight} << 40) < share * whole; });
}

}  // namespace

std::optional<OutOfRange> out_of_range(const Params& p) {
  constexpr float least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  if (!(p.temperature >= least && p.temperature <= most))
    return OutOfRange{
        "temperature",
        text(p.temperature) + " is outside " + text(least) + " to " + text(most) +
            ", the normal binary32 numbers above 0; for greedy decoding turn do_sample off (--no-do-sample)"};
  if (p.top_k < 0) return OutOfRange{"top_k", std::to_string(p.top_k) + " is negative; use 0 for no limit"};
  if (!(p.top_p >= least && p.top_p <= 1))
    return OutOfRange{"top_p", text(p.top_p) + " is outside " + text(least) +
                                   " (the least normal binary32 number) to 1; use 1 for no limit"};
  if (p.min_p != 0 && !(p.min_p >= least && p.min_p <= 1))
    return OutOfRange{"min_p", text(p.min_p) + " is neither 0 (no limit) nor from " + text(least) +
                                   " (the least normal binary32 number) to 1"};
  if (p.epsilon_cutoff != 0 && !(p.epsilon_cutoff >= least && p.epsilon_cutoff < 1))
    return OutOfRange{"epsilon_cutoff", text(p.epsilon_cutoff) + " is neither 0 (no limit) nor from " +
                                            text(least) + " (the least normal binary32 number) to below 1"};
  return out_of_range(p.processors);
}

Status check(const Params& p) {
  const std::optional<OutOfRange> found = out_of_range(p);
  return found ? bad_input(found->parameter + ": " + found->why) : Status();
}

std::string describe(const Params& p) {
  if (!p.do_sample) return "greedy" + describe(p.processors);
  return "temperature " + text(p.temperature) + ", top-k " + (p.top_k ? std::to_string(p.top_k) : "all") +
         ", top-p " + text(p.top_p) + (p.min_p > 0 ? ", min-p " + text(p.min_p) : "") +
         (p.epsilon_cutoff > 0 ? ", epsilon cutoff " + text(p.epsilon_cutoff) : "") + ", seed " +
         std::to_string(p.seed) + (p.stream > 0 ? ", stream " + std::to_string(p.stream) : "") +
         describe(p.processors);
}

std::vector<int32_t> most_likely(std::span<const float> logits, size_t count) {
  if (count == 0 || logits.empty()) return {};
  const num::ArithmeticEnv env;
  std::vector<int32_t> tokens = first_tokens(logits, block_maxima(logits), std::min(count, logits.size()));
  std::ranges::sort(tokens, std::greater<>(),
                    [&](int32_t t) { return key(rank(logits[t]), static_cast<size_t>(t)); });
  return tokens;
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

uint64_t weight_of(float logit, float greatest, float temperature) {
  if (logit == greatest) return fixed40(1);                 // also where it is +Inf
  const float d = (logit - greatest) / temperature;         // two IEEE operations
  return d > -28.5f ? fixed40(num::reference::exp(d)) : 0;  // exp(-28.5) < 2^-41; 0 also for NaN
}

Result<std::vector<Choice>> distribution(std::span<const float> logits, const Params& params) {
  const num::ArithmeticEnv env;
  const std::vector<int32_t> maxima = block_maxima(logits);
  INVAR_TRY(const int32_t best, greatest(logits, maxima));
  const float max = logits[best];
  std::vector<Choice> choices;
  choices.reserve(params.top_k > 0 ? std::min(logits.size(), static_cast<size_t>(params.top_k))
                                   : logits.size());
  auto add = [&](int32_t token) {
    if (const uint64_t w = weight_of(logits[token], max, params.temperature)) choices.push_back({token, w});
  };
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < logits.size()) {
    const auto first = first_tokens(logits, maxima, static_cast<size_t>(params.top_k));
    num::mend_arithmetic_env();  // memory may have come by a system call
    for (const int32_t t : first) add(t);
  } else {
    num::mend_arithmetic_env();
    for (size_t i = 0; i < logits.size(); ++i) add(static_cast<int32_t>(i));
  }
  if (params.top_p < 1) keep_top_p(choices, logits, params.top_p);
  if (params.min_p > 0) keep_min_p(choices, params.min_p);
  if (params.epsilon_cutoff > 0) keep_epsilon(choices, params.epsilon_cutoff);
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

// Chooses with parameters that are in range.
static Result<int32_t> choose_checked(std::span<const float> logits, const Params& params,
                                      uint64_t position) {
  const num::ArithmeticEnv env;  // subnormal logits are compared, too
  if (!params.do_sample) return greatest(logits, block_maxima(logits));
  INVAR_TRY(const std::vector<Choice> choices, distribution(logits, params));
  return draw(choices, random_u64(params.seed, position, params.stream));
}

Result<int32_t> pick(std::span<const float> logits, const Params& params, const Context& context) {
  INVAR_CHECK_OK(check(params));
  std::vector<float> room;
  INVAR_TRY(const std::span<const float> processed, process(logits, params.processors, context, room));
  return choose_checked(processed, params, context.answer.size());
}

Result<int32_t> choose(std::span<const float> logits, const Params& params, uint64_t position) {
  INVAR_CHECK_OK(check(params));
  return choose_checked(logits, params, position);
}

}  // namespace invar::sample
