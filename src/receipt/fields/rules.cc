// The rules within a receipt, see rules.h.
#include "receipt/fields/rules.h"

#include <algorithm>
#include <set>

#include "base/dtype.h"
#include "base/operation_set.h"
#include "base/profile.h"
#include "base/text/json.h"
#include "grammar/grammar.h"
#include "receipt/fields/members.h"

namespace invar::receipt {
namespace {

using Findings = std::vector<Finding>;

std::string at(std::string_view path, size_t i) {
  return std::string(path) + "[" + std::to_string(i) + "]";
}

constexpr int64_t kAnyVocab = int64_t{1} << 31;

}  // namespace

void check_tokens(std::string_view path, const std::vector<int32_t>& tokens, int64_t vocab, Findings& f) {
  for (size_t i = 0; i < tokens.size() && !full(f); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      f.push_back(
          {at(path, i), "a token id in [0, " + std::to_string(vocab) + ")", std::to_string(tokens[i])});
}

static void check_tensors(const std::string& field, const std::vector<TensorDigest>& tensors, Findings& f) {
  for (size_t i = 0; i < tensors.size() && !full(f); ++i) {
    const TensorDigest& t = tensors[i];
    if (!dtype_from(t.dtype)) f.push_back({at(field, i) + ".dtype", "a known type", json::quote(t.dtype)});
    for (size_t k = 0; k < t.shape.size() && !full(f); ++k)
      if (t.shape[k] < 0)
        f.push_back({at(at(field, i) + ".shape", k), "an integer >= 0", std::to_string(t.shape[k])});
    if (i > 0 && t.name <= tensors[i - 1].name)
      f.push_back({at(field, i) + ".name", "names in ascending order", json::quote(t.name)});
  }
}

void check_ranges(const Receipt& r, Findings& f) {
  check_tensors("model.tensors", r.tensors, f);
  if (!operation_set_from(r.operation_set))
    f.push_back(
        {"program.operation_set", "one of " + std::string(kOperationSetNames), json::quote(r.operation_set)});
  if (r.format > 1) {
    const auto profile = profile_from(r.profile);
    if (!profile)
      f.push_back({"program.profile", "one of " + std::string(kProfileNames), json::quote(r.profile)});
    else if (*profile != Profile::fp32 && r.operation_set != name_of(OperationSet::reproducible))
      f.push_back({"program.profile", "fp32 where the operation set is " + json::quote(r.operation_set),
                   json::quote(r.profile)});
  }
  if (r.format == kTensorFormat) {
    check_tensors("input.tensors", r.input_tensors, f);
    check_tensors("output.tensors", r.output_tensors, f);
    return;
  }
  check_tokens("input.tokens", r.prompt_tokens, kAnyVocab, f);
  check_tokens("input.decoder_tokens", r.decoder_tokens, kAnyVocab, f);
  check_tokens("input.stop_tokens", r.stop_tokens, kAnyVocab, f);
  check_tokens("input.stop_token_ids", r.stop_token_ids, kAnyVocab, f);
  check_tokens("output.tokens", r.tokens, kAnyVocab, f);
  for (size_t i = 0; i < r.stop_strings.size() && !full(f); ++i)
    if (r.stop_strings[i].empty()) f.push_back({at("input.stop_strings", i), "a text", "the empty text"});
  if (const std::string& asked = r.sampling.processors.structured_outputs; !asked.empty())
    if (const Status known = grammar::check(asked); !known)
      f.push_back({"input.structured_outputs", "what spec/grammar.md lists", known.error().message});
  if (r.audio_start < 0) f.push_back({"input.audio_start", "at least 0", std::to_string(r.audio_start)});
  if (r.max_new_tokens < 1)
    f.push_back({"input.max_new_tokens", "at least 1", std::to_string(r.max_new_tokens)});
  if (const auto found = sample::out_of_range(r.sampling))
    f.push_back({"input." + found->parameter, "a value in range", found->why});
  if (r.finish_reason != "stop" && r.finish_reason != "length")
    f.push_back({"output.finish_reason", "\"stop\" or \"length\"", json::quote(r.finish_reason)});
}

std::string finish_reason(const Receipt& r) {
  const std::set<int32_t> stops(r.stop_tokens.begin(), r.stop_tokens.end());
  for (size_t i = 0; i < r.tokens.size(); ++i)
    if (stops.contains(r.tokens[i])) return i + 1 == r.tokens.size() ? "stop" : "";
  // Only the tokenizer knows whether a stop string ends here (receipt.15).
  if (!r.stop_strings.empty() && r.finish_reason == "stop") return "stop";
  return static_cast<int64_t>(r.tokens.size()) == r.max_new_tokens ? "length" : "";
}

template <class T>
static void check_ascending(const char* field, const std::vector<T>& list, Findings& f) {
  for (size_t i = 1; i < list.size() && !full(f); ++i)
    if (list[i] <= list[i - 1])
      f.push_back({at(field, i), "an ascending list without repetition", "a value that is not greater"});
}

// receipt.21, of the optional fields: what has no effect is not said.
static void check_settings(const Receipt& r, Findings& f) {
  const sample::Processors& p = r.sampling.processors;
  check_ascending("input.logit_bias", p.logit_bias, f);
  check_ascending("input.bad_words_ids", p.bad_words_ids, f);
  check_ascending("input.forced_eos_token_id", p.forced_eos_token_id, f);
  check_ascending("input.suppress_tokens", p.suppress_tokens, f);
  check_ascending("input.begin_suppress_tokens", p.begin_suppress_tokens, f);
  check_ascending("input.allowed_token_ids", p.allowed_token_ids, f);
  check_ascending("input.stop_token_ids", r.stop_token_ids, f);
  check_ascending("input.stop_strings", r.stop_strings, f);
  if (r.stop_in_answer && r.stop_strings.empty())
    f.push_back({"input.stop_in_answer", "no such member where there are no stop_strings", "true"});
  const std::set<int32_t> stops(r.stop_tokens.begin(), r.stop_tokens.end());
  for (size_t i = 0; i < p.bad_words_ids.size() && !full(f); ++i)
    if (const auto& word = p.bad_words_ids[i]; word.size() == 1 && stops.contains(word[0]))
      f.push_back({at("input.bad_words_ids", i), "no stop token alone", std::to_string(word[0])});
  if (p.min_new_tokens > (r.stop_tokens.empty() ? 0 : r.max_new_tokens))
    f.push_back({"input.min_new_tokens",
                 r.stop_tokens.empty() ? "no such member where there is no stop token"
                                       : "at most input.max_new_tokens",
                 std::to_string(p.min_new_tokens)});
  if (p.short_circuit_length >= r.max_new_tokens && p.short_circuit_length > 0)
    f.push_back(
        {"input.short_circuit_length", "below input.max_new_tokens", std::to_string(p.short_circuit_length)});
  if (p.forced_bos_token_id >= 0 && r.continued().size() != 1)
    f.push_back({"input.forced_bos_token_id", "no such member, but behind a prompt of one token",
                 std::to_string(p.forced_bos_token_id)});
}

// receipt.21: one computation has one receipt.
static void check_unambiguous(const Receipt& r, Findings& f) {
  check_ascending("input.stop_tokens", r.stop_tokens, f);
  check_settings(r, f);
  if (r.sampling.do_sample) return;
  const sample::Params greedy;
  const auto fixed = [&](const char* name, bool equal, const char* value) {
    if (!equal)
      f.push_back({std::string("input.") + name, std::string(value) + ", because nothing is sampled",
                   "another value"});
  };
  fixed("temperature", r.sampling.temperature == greedy.temperature, "\"1\"");
  fixed("top_k", r.sampling.top_k == greedy.top_k, "0");
  fixed("top_p", r.sampling.top_p == greedy.top_p, "\"1\"");
  fixed("seed", r.sampling.seed == greedy.seed, "\"0\"");
  fixed("min_p", r.sampling.min_p == greedy.min_p, "no such member");
  fixed("stream", r.sampling.stream == greedy.stream, "no such member");
  fixed("epsilon_cutoff", r.sampling.epsilon_cutoff == greedy.epsilon_cutoff, "no such member");
}

void check_consistency(const Receipt& r, Findings& f) {
  std::vector<plan::Weight> weights;
  for (const TensorDigest& t : r.tensors) {
    plan::Weight& w = weights.emplace_back();
    w.name = t.name, w.dtype = dtype_from(t.dtype).value_or(DType::u8), w.shape = t.shape,
    w.sha256 = t.sha256;
  }
  if (Digest root = plan::weights_digest(weights); root != r.weights)
    f.push_back({"model.weights", to_hex(root) + " (from model.tensors)", to_hex(r.weights), true});
  if (r.format == kTensorFormat) {
    if (r.output_tensors.empty()) f.push_back({"output.tensors", "at least one tensor", "none"});
    return;
  }
  if (r.format > 1) check_unambiguous(r, f);
  const bool withheld = !r.withheld.empty();
  const bool hears = r.audio != Digest{} && !r.decoder_tokens.empty();  // receipt.46
  if (r.prompt_tokens.empty() && !hears && !withheld)
    f.push_back({"input.tokens", "at least one token", "none"});
  if (r.logits.size() != r.tokens.size() && !withheld)
    f.push_back({"output.logits", std::to_string(r.tokens.size()) + " digests, one per token",
                 std::to_string(r.logits.size())});
  if (r.tokens.empty())
    f.push_back({"output.tokens", "at least one token", "none"});
  else if (static_cast<int64_t>(r.tokens.size()) > r.max_new_tokens)
    f.push_back({"output.tokens",
                 "at most " + std::to_string(r.max_new_tokens) + " tokens (input.max_new_tokens)",
                 std::to_string(r.tokens.size())});
  else if (std::string reason = finish_reason(r); reason.empty())
    f.push_back({"output.tokens", "an end at the first stop token or after input.max_new_tokens tokens",
                 std::to_string(r.tokens.size()) + " tokens"});
  else if (reason != r.finish_reason)
    f.push_back({"output.finish_reason", json::quote(reason), json::quote(r.finish_reason)});
}

}  // namespace invar::receipt
