#include "sample/processors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text/decimal.h"
#include "num/env.h"
#include "sample/distribution.h"

namespace invar::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Logits that are copied where the first of them changes.
class Logits {
 public:
  Logits(std::span<const float> given, std::vector<float>& room) : given_(given), room_(room) {}
  size_t size() const { return given_.size(); }
  std::span<float> write() {
    if (now_.empty()) room_.assign(given_.begin(), given_.end()), now_ = room_;
    return now_;
  }
  void set(int32_t token, float logit) {
    if (token >= 0 && static_cast<size_t>(token) < size()) write()[token] = logit;
  }
  void mask(std::span<const int32_t> tokens) {
    for (const int32_t t : tokens) set(t, -kInfinity);
  }
  // sampling.15
  Status force(std::span<const int32_t> tokens, const char* name) {
    std::ranges::fill(write(), -kInfinity);
    for (const int32_t t : tokens) {
      INVAR_CHECK_OK(has(t, name));
      set(t, 0);
    }
    return {};
  }
  Status has(int32_t token, const char* name) const {
    if (token >= 0 && static_cast<size_t>(token) < size()) return {};
    return bad_input(std::string(name) + ": the model has no logit of token " + std::to_string(token) +
                     ", only " + std::to_string(size()));
  }
  std::span<const float> read() const { return now_.empty() ? given_ : now_; }

 private:
  const std::span<const float> given_;
  std::vector<float>& room_;
  std::span<float> now_;
};

// Prompt and answer as one sequence.
class History {
 public:
  explicit History(const Context& c) : prompt_(c.prompt), answer_(c.answer) {}
  size_t size() const { return prompt_.size() + answer_.size(); }
  int32_t operator[](size_t i) const { return i < prompt_.size() ? prompt_[i] : answer_[i - prompt_.size()]; }
  // Whether the `count` tokens from `a` are those from `b`.
  bool repeats(size_t a, size_t b, size_t count) const {
    size_t i = 0;
    while (i < count && (*this)[a + i] == (*this)[b + i]) ++i;
    return i == count;
  }
  bool ends_with(std::span<const int32_t> tokens) const {
    size_t i = 0;
    if (tokens.size() > size()) return false;
    while (i < tokens.size() && (*this)[size() - tokens.size() + i] == tokens[i]) ++i;
    return i == tokens.size();
  }

 private:
  const std::span<const int32_t> prompt_, answer_;
};

// sampling.11: from the model's own logits, so a token that comes twice is changed once.
void penalize_repetition(Logits& logits, std::span<const float> own, const History& h, float penalty) {
  const num::ArithmeticEnv env;
  for (size_t i = 0; i < h.size(); ++i) {
    const int32_t t = h[i];
    if (t < 0 || static_cast<size_t>(t) >= own.size()) continue;
    logits.set(t, own[t] < 0 ? own[t] * penalty : own[t] / penalty);
  }
}

// sampling.22
Status add_bias(Logits& logits, std::span<const LogitBias> list) {
  const num::ArithmeticEnv env;
  for (const auto& [token, bias] : list) {
    INVAR_CHECK_OK(logits.has(token, "logit_bias"));
    logits.set(token, logits.read()[token] + bias);
  }
  return {};
}

// sampling.23
void penalize_answer(Logits& logits, std::span<const int32_t> answer, float frequency, float presence) {
  const num::ArithmeticEnv env;
  std::vector<int32_t> count(logits.size());
  const auto counted = [&](int32_t t) { return t >= 0 && static_cast<size_t>(t) < count.size(); };
  for (const int32_t t : answer)
    if (counted(t)) ++count[t];
  num::mend_arithmetic_env();  // memory may have come by a system call
  for (const int32_t t : answer) {
    if (!counted(t) || count[t] == 0) continue;
    const float share = static_cast<float>(std::exchange(count[t], 0)) * frequency;
    const float l = logits.read()[t] - share;
    logits.set(t, l - presence);
  }
}

// sampling.12: the tokens that followed where the last n - 1 tokens stood before.
void ban_repeated_ngrams(Logits& logits, const History& h, size_t n) {
  for (size_t i = 0; i + n <= h.size(); ++i)
    if (h.repeats(i, h.size() + 1 - n, n - 1)) logits.set(h[i + n - 1], -kInfinity);
}

// sampling.13
Status ban_words(Logits& logits, const History& h, const std::vector<std::vector<int32_t>>& words) {
  for (const std::vector<int32_t>& word : words) {
    for (const int32_t t : word) INVAR_CHECK_OK(logits.has(t, "bad_words_ids"));
    if (h.ends_with(std::span(word).first(word.size() - 1))) logits.set(word.back(), -kInfinity);
  }
  return {};
}

// sampling.16
void make_finite(std::span<float> logits) {
  constexpr float most = std::numeric_limits<float>::max();
  for (float& l : logits) l = std::isnan(l) ? 0.0f : std::clamp(l, -most, most);
}

// +0, or a normal number of at most `most` in magnitude: -0 would be a second spelling of "off".
bool is_offset(float x, float most) {
  return std::bit_cast<uint32_t>(x) == 0 || (std::isnormal(x) && std::abs(x) <= most);
}

// sampling.28
void keep(Logits& logits, std::vector<int32_t> kept) {
  std::ranges::sort(kept);
  const std::span<float> all = logits.write();
  size_t next = 0;  // the first id that is left to keep
  for (size_t t = 0; t < all.size(); ++t) {
    while (next < kept.size() && static_cast<size_t>(kept[next]) < t) ++next;
    if (next == kept.size() || static_cast<size_t>(kept[next]) != t) all[t] = -kInfinity;
  }
}

// sampling.29
Status constrain(Logits& logits, const Processors& p, const Context& c) {
  if (!p.constraint)
    return Error{Code::internal, "structured_outputs: there is no vocabulary to choose from"};
  const auto after = p.constraint->after(c.answer);
  if (!after) return Error{after.error().code, "structured_outputs: " + after.error().message};
  const grammar::Allowed& allowed = *after;
  if (allowed.all) return {};
  const std::span<float> all = logits.write();
  bool any = false;
  for (size_t t = 0; t < all.size(); ++t) {
    const auto id = static_cast<int32_t>(t);
    if (!allowed.has(id) && !(allowed.complete && std::ranges::count(c.stop_tokens, id) > 0))
      all[t] = -kInfinity;
    any |= all[t] > -kInfinity;
  }
  if (any) return {};
  return bad_input(
      "structured_outputs: no token may come after " + std::to_string(c.answer.size()) +
      " tokens of the answer: what it has to fit leaves none of those that the other settings and the "
      "vocabulary have");
}

// sampling.32: Whisper's rules for tokens that are times.
void keep_times_in_order(Logits& logits, int32_t begin, int32_t most, const Context& c) {
  const num::ArithmeticEnv env;
  const std::span<float> all = logits.write();
  const auto mask = [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < std::min(to, static_cast<int64_t>(all.size())); ++t) all[t] = -kInfinity;
  };
  const auto end = static_cast<int64_t>(all.size());
  const auto is_time = [&](int32_t t) { return t >= begin; };
  const size_t n = c.answer.size();
  const bool last = n > 0 && is_time(c.answer[n - 1]), before = n < 2 || is_time(c.answer[n - 2]);
  const auto latest = std::ranges::find_if(c.answer.rbegin(), c.answer.rend(), is_time);
  mask(begin - 1, begin);
  if (last && before) mask(begin, end);
  if (last && !before) {
    int32_t stop = begin;
    for (const int32_t t : c.stop_tokens) stop = std::min(stop, t);
    mask(0, stop);
  }
  if (latest != c.answer.rend()) mask(begin, int64_t{*latest} + (last && !before ? 0 : 1));
  if (n == 0) mask(0, begin);
  if (n == 0 && most >= 0) mask(int64_t{begin} + most + 1, end);

  const auto greatest_of = [](std::span<const float> some) {
    float m = -kInfinity;
    for (const float l : some) m = l > m ? l : m;
    return m;
  };
  const size_t words = std::min(static_cast<size_t>(begin), all.size());
  const float word = greatest_of(all.first(words));
  const float greatest = std::max(word, greatest_of(all.subspan(words)));
  uint64_t times = 0;
  for (const float l : all.subspan(words)) times += l > -kInfinity ? weight_of(l, greatest, 1) : 0;
  if (times > 0 && (word == -kInfinity || times > weight_of(word, greatest, 1))) mask(0, begin);
}

std::optional<OutOfRange> out_of_range(std::span<const LogitBias> list) {
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [token, bias] = list[i];
    const std::string of = "of token " + std::to_string(token);
    if (token < 0) return OutOfRange{"logit_bias", "a token id is negative"};
    if (bias == 0 || !is_offset(bias, 100))
      return OutOfRange{"logit_bias",
                        shortest_text(bias) + " " + of +
                            " is not from -100 to 100 and other than 0, a normal binary32 number"};
    if (i > 0 && token == list[i - 1].token) return OutOfRange{"logit_bias", "two numbers " + of};
  }
  return {};
}

bool any_negative(std::span<const int32_t> tokens) {
  return std::ranges::any_of(tokens, [](int32_t t) { return t < 0; });
}

}  // namespace

Result<std::span<const float>> process(std::span<const float> given, const Processors& p, const Context& c,
                                       std::vector<float>& room) {
  static const Processors kNone;
  if (p == kNone) return given;
  Logits logits(given, room);
  const History h(c);
  const size_t position = c.answer.size();
  if (p.repetition_penalty != 1) penalize_repetition(logits, given, h, p.repetition_penalty);
  INVAR_CHECK_OK(add_bias(logits, p.logit_bias));
  if (p.frequency_penalty != 0 || p.presence_penalty != 0)
    penalize_answer(logits, c.answer, p.frequency_penalty, p.presence_penalty);
  if (p.no_repeat_ngram_size > 0) ban_repeated_ngrams(logits, h, static_cast<size_t>(p.no_repeat_ngram_size));
  INVAR_CHECK_OK(ban_words(logits, h, p.bad_words_ids));
  if (static_cast<int64_t>(position) < p.min_new_tokens) logits.mask(c.stop_tokens);  // sampling.14
  const bool forces_bos = p.forced_bos_token_id >= 0;
  if (forces_bos && h.size() == 1) {
    INVAR_CHECK_OK(logits.force({&p.forced_bos_token_id, 1}, "forced_bos_token_id"));
  }
  if (!p.forced_eos_token_id.empty() && static_cast<int64_t>(position) + 1 == c.max_new_tokens) {
    INVAR_CHECK_OK(logits.force(p.forced_eos_token_id, "forced_eos_token_id"));
  }
  if (p.remove_invalid_values) make_finite(logits.write());
  logits.mask(p.suppress_tokens);  // sampling.17
  const size_t first = c.prompt.size() == 1 && forces_bos ? 1 : 0;
  if (position == first) logits.mask(p.begin_suppress_tokens);
  // sampling.21
  if (p.short_circuit_length > 0 && static_cast<int64_t>(position) == p.short_circuit_length &&
      std::ranges::count(c.answer, p.short_circuit_token) == 0) {
    INVAR_CHECK_OK(logits.force({&p.short_circuit_token, 1}, "short_circuit_token"));
  }
  if (!p.allowed_token_ids.empty()) keep(logits, p.allowed_token_ids);
  if (!p.structured_outputs.empty()) {
    INVAR_CHECK_OK(constrain(logits, p, c));
  }
  if (p.timestamp_begin >= 0)
    keep_times_in_order(logits, p.timestamp_begin, p.max_initial_timestamp_index, c);
  return logits.read();
}

std::optional<OutOfRange> out_of_range(const Processors& p) {
  constexpr float least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  if (!(p.repetition_penalty >= least && p.repetition_penalty <= most))
    return OutOfRange{"repetition_penalty", shortest_text(p.repetition_penalty) + " is outside " +
                                                shortest_text(least) + " to " + shortest_text(most) +
                                                "; use 1 for no penalty"};
  if (const auto found = out_of_range(p.logit_bias)) return found;
  for (const auto& [name, x] : {std::pair("frequency_penalty", p.frequency_penalty),
                                std::pair("presence_penalty", p.presence_penalty)})
    if (!is_offset(x, 2))
      return OutOfRange{
          name, shortest_text(x) + " is neither 0 (no penalty) nor a normal binary32 number from -2 to 2"};
  if (p.no_repeat_ngram_size < 0)
    return OutOfRange{"no_repeat_ngram_size",
                      std::to_string(p.no_repeat_ngram_size) + " is negative; use 0 for no limit"};
  for (const std::vector<int32_t>& word : p.bad_words_ids)
    if (word.empty() || any_negative(word))
      return OutOfRange{"bad_words_ids", "a word is a list of at least one token id"};
  if (p.min_new_tokens < 0)
    return OutOfRange{"min_new_tokens", std::to_string(p.min_new_tokens) + " is negative"};
  if (p.forced_bos_token_id < -1)
    return OutOfRange{"forced_bos_token_id", std::to_string(p.forced_bos_token_id) + " is no token id"};
  if (p.short_circuit_length < 0)
    return OutOfRange{"short_circuit_length", std::to_string(p.short_circuit_length) + " is negative"};
  if (p.short_circuit_token < -1 || (p.short_circuit_token >= 0) != (p.short_circuit_length > 0))
    return OutOfRange{"short_circuit_token",
                      "a token id goes with short_circuit_length, and without it none"};
  if (p.timestamp_begin != -1 && p.timestamp_begin < 1)
    return OutOfRange{"timestamp_begin", std::to_string(p.timestamp_begin) + " is no token behind another"};
  if (p.max_initial_timestamp_index < -1 || (p.max_initial_timestamp_index >= 0 && p.timestamp_begin < 0))
    return OutOfRange{"max_initial_timestamp_index",
                      "a number of times goes with timestamp_begin, and without it none"};
  for (const auto& [name, tokens] : {std::pair("forced_eos_token_id", &p.forced_eos_token_id),
                                     std::pair("suppress_tokens", &p.suppress_tokens),
                                     std::pair("begin_suppress_tokens", &p.begin_suppress_tokens),
                                     std::pair("allowed_token_ids", &p.allowed_token_ids)})
    if (any_negative(*tokens)) return OutOfRange{name, "a token id is negative"};
  return {};
}

std::string describe(const Processors& p) {
  std::string s;
  const auto say = [&](bool is_set, const std::string& text) { s += is_set ? ", " + text : ""; };
  const auto count = [](const auto& list, const std::string& what) {
    return std::to_string(list.size()) + " " + what + (list.size() == 1 ? "" : "s");
  };
  say(p.repetition_penalty != 1, "repetition penalty " + shortest_text(p.repetition_penalty));
  say(!p.logit_bias.empty(), count(p.logit_bias, "biased logit"));
  say(p.frequency_penalty != 0, "frequency penalty " + shortest_text(p.frequency_penalty));
  say(p.presence_penalty != 0, "presence penalty " + shortest_text(p.presence_penalty));
  say(p.no_repeat_ngram_size > 0, "no repeated " + std::to_string(p.no_repeat_ngram_size) + "-gram");
  say(!p.bad_words_ids.empty(), "without " + count(p.bad_words_ids, "bad word"));
  say(p.min_new_tokens > 0, "at least " + std::to_string(p.min_new_tokens) + " new tokens");
  say(p.forced_bos_token_id >= 0, "forced first token " + std::to_string(p.forced_bos_token_id));
  say(!p.forced_eos_token_id.empty(), "forced last token");
  say(p.remove_invalid_values, "invalid logits removed");
  say(!p.suppress_tokens.empty(), "without " + count(p.suppress_tokens, "token"));
  say(p.short_circuit_length > 0, "token " + std::to_string(p.short_circuit_token) + " behind " +
                                      std::to_string(p.short_circuit_length) + " tokens at the latest");
  say(!p.begin_suppress_tokens.empty(), "not beginning with " + count(p.begin_suppress_tokens, "token"));
  say(!p.allowed_token_ids.empty(), "of " + count(p.allowed_token_ids, "allowed token"));
  say(p.timestamp_begin >= 0, "with timestamps");
  say(!p.structured_outputs.empty(), grammar::describe(p.structured_outputs));
  return s;
}

}  // namespace invar::sample
