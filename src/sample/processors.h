// Logits processors: settings of a generation that change the logits before a token is chosen.
// Names, meaning and order are those of transformers, and of OpenAI where transformers has none
// (spec/sampling.md sampling.10 to sampling.17, sampling.21 to sampling.23, sampling.28,
// sampling.29, sampling.32).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "grammar/grammar.h"

namespace invar::sample {

// How far a generation has come when a token is chosen: answer.size() tokens, of at most
// max_new_tokens, follow the prompt. The spans outlive the call.
struct Context {
  std::span<const int32_t> prompt, answer, stop_tokens;
  int64_t max_new_tokens = 0;
};

// What is added to the logit of a token.
struct LogitBias {
  int32_t token;
  float bias;
  auto operator<=>(const LogitBias&) const = default;
};

struct Processors {
  float repetition_penalty = 1;                       // normal binary32, > 0; 1 = off
  std::vector<LogitBias> logit_bias{};                // ascending; -100 to 100, normal binary32
  float frequency_penalty = 0;                        // -2 to 2, normal binary32; 0 = off
  float presence_penalty = 0;                         // -2 to 2, normal binary32; 0 = off
  int32_t no_repeat_ngram_size = 0;                   // 0 = off
  std::vector<std::vector<int32_t>> bad_words_ids{};  // each of at least one token
  int64_t min_new_tokens = 0;                         // no stop token before
  int32_t forced_bos_token_id = -1;                   // behind a prompt of one token; -1 = off
  std::vector<int32_t> forced_eos_token_id{};         // of these the last token that there may be
  bool remove_invalid_values = false;                 // NaN and infinities become finite
  std::vector<int32_t> suppress_tokens{};             // never chosen
  std::vector<int32_t> begin_suppress_tokens{};       // not chosen as the first token
  int64_t short_circuit_length = 0;                   // 0 = off; else behind so many tokens this one,
  int32_t short_circuit_token = -1;                   // unless it came before; -1 = off
  std::vector<int32_t> allowed_token_ids{};           // no others are chosen; empty = off
  int32_t timestamp_begin = -1;                       // from this token on, tokens are times; -1 = off
  int32_t max_initial_timestamp_index = -1;           // of the first time at most; -1 = off
  std::string structured_outputs{};                   // what the answer fits (grammar.2); "" = off
  // The same, of the model's vocabulary: whoever sets structured_outputs sets it.
  std::shared_ptr<const grammar::Constraint> constraint{};

  bool operator==(const Processors&) const = default;
};

// A parameter whose value is outside its range, and what is wrong with it.
struct OutOfRange {
  std::string parameter, why;
};

// The first parameter that is outside the ranges above.
std::optional<OutOfRange> out_of_range(const Processors&);

// The settings that are not off, for people: ", repetition penalty 1.1, suppressing 3 tokens".
std::string describe(const Processors&);

// The logits that a token is chosen from. Where no processor changes one they are `logits`
// themselves, else a copy in `room`. bad_input: a forced token or a bad word that has no logit.
Result<std::span<const float>> process(std::span<const float> logits, const Processors&, const Context&,
                                       std::vector<float>& room);

}  // namespace invar::sample
