#include "generate/settings/decoding_params.h"

#include <algorithm>
#include <utility>

#include "generate/engine/generation_loop.h"

namespace invar::generate {

namespace {

// The settings of `first`, else of `second`.
GenerationSettings first_of(GenerationSettings first, const GenerationSettings& second) {
  const auto take = [](auto& into, const auto& other) {
    if (!into) into = other;
  };
  take(first.do_sample, second.do_sample);
  take(first.temperature, second.temperature);
  take(first.top_p, second.top_p);
  take(first.top_k, second.top_k);
  take(first.min_p, second.min_p);
  take(first.epsilon_cutoff, second.epsilon_cutoff);
  take(first.repetition_penalty, second.repetition_penalty);
  take(first.no_repeat_ngram_size, second.no_repeat_ngram_size);
  take(first.forced_bos_token_id, second.forced_bos_token_id);
  take(first.forced_eos_token_id, second.forced_eos_token_id);
  take(first.remove_invalid_values, second.remove_invalid_values);
  take(first.suppress_tokens, second.suppress_tokens);
  take(first.begin_suppress_tokens, second.begin_suppress_tokens);
  take(first.bad_words_ids, second.bad_words_ids);
  take(first.short_circuit_length, second.short_circuit_length);
  take(first.short_circuit_token, second.short_circuit_token);
  take(first.stop_strings, second.stop_strings);
  return first;
}

template <class T>
std::vector<T> each_once(std::vector<T> list) {
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
  return list;
}

sample::Params drawing_params(const GenerationSettings& s, int32_t top_k) {
  sample::Params p;
  p.temperature = s.temperature.value_or(p.temperature);
  p.top_k = s.top_k.value_or(top_k);
  p.top_p = s.top_p.value_or(p.top_p);
  p.min_p = s.min_p.value_or(p.min_p);
  p.epsilon_cutoff = s.epsilon_cutoff.value_or(p.epsilon_cutoff);
  return p;
}

// receipt.21: what draws nothing decides nothing, so greedy parameters are those of Params{}, and
// the ranges of the checkpoint's do not matter.
Result<sample::Params> params_of(const GenerationSettings& s, bool do_sample, int32_t top_k, uint64_t seed) {
  sample::Params p;
  if (do_sample) p = drawing_params(s, top_k), p.seed = seed;
  sample::Processors r;
  r.repetition_penalty = s.repetition_penalty.value_or(r.repetition_penalty);
  r.no_repeat_ngram_size = s.no_repeat_ngram_size.value_or(r.no_repeat_ngram_size);
  r.min_new_tokens = s.min_new_tokens.value_or(r.min_new_tokens);
  r.forced_bos_token_id = s.forced_bos_token_id.value_or(r.forced_bos_token_id);
  r.forced_eos_token_id = each_once(s.forced_eos_token_id.value_or(r.forced_eos_token_id));
  r.remove_invalid_values = s.remove_invalid_values.value_or(r.remove_invalid_values);
  r.suppress_tokens = each_once(s.suppress_tokens.value_or(r.suppress_tokens));
  r.begin_suppress_tokens = each_once(s.begin_suppress_tokens.value_or(r.begin_suppress_tokens));
  r.bad_words_ids = each_once(s.bad_words_ids.value_or(r.bad_words_ids));
  r.short_circuit_length = s.short_circuit_length.value_or(r.short_circuit_length);
  r.short_circuit_token = s.short_circuit_token.value_or(r.short_circuit_token);
  p.do_sample = do_sample, p.processors = std::move(r);
  INVAR_CHECK_OK(sample::check(p));
  return p;
}

// Whether tokens are drawn: what the caller says, else `otherwise`. At a temperature of 0 the most
// likely token has all the probability, so nothing is drawn.
Result<bool> draws(const SamplingOptions& o, bool otherwise) {
  const bool cold = o.temperature && *o.temperature == 0 && !o.do_sample.value_or(false);
  GenerationSettings given = o;
  if (cold) given.temperature.reset();
  INVAR_CHECK_OK(sample::check(drawing_params(given, 0)));  // even where nothing uses them
  const bool asked = o.temperature || o.top_k || o.top_p || o.min_p || o.epsilon_cutoff;
  return !cold && o.do_sample.value_or(asked || otherwise);
}

}  // namespace

Result<sample::Params> sampling_params(const SamplingOptions& o) {
  INVAR_TRY(const bool do_sample, draws(o, false));
  return params_of(o, do_sample, 0, o.seed);
}

Result<DecodingParams> decoding_params(const ModelFolder& m, const SamplingOptions& o) {
  DecodingParams d;
  d.requested = o.max_new_tokens, d.requested_least = o.min_new_tokens;
  if (!o.no_generation_config) {
    INVAR_TRY(d.config, read_generation_config(m.folder));
  }
  INVAR_TRY(const bool do_sample, draws(o, d.config.do_sample.value_or(false)));
  const GenerationSettings settings = first_of(o, d.config);
  if (do_sample) {
    INVAR_CHECK_OK(d.config.drawing);
    if (const Status ranges = sample::check(drawing_params(settings, kTopK)); !ranges)
      return bad_input(d.config.path + ": " + ranges.error().message);
  }
  INVAR_TRY(d.params, params_of(settings, do_sample, kTopK, o.seed));
  d.stop_strings = each_once(settings.stop_strings.value_or(d.stop_strings));
  if (std::ranges::count(d.stop_strings, "") > 0)
    return bad_input("a stop text is empty, and would end every answer at once: leave it out");
  std::erase_if(d.params.processors.bad_words_ids, [&](const std::vector<int32_t>& word) {  // sampling.13
    return word.size() == 1 && std::ranges::count(m.stop_tokens, word[0]) > 0;
  });
  return d;
}

Result<sample::Params> params_for(const ModelFolder& m, const DecodingParams& d, int64_t tokens,
                                  int64_t max_new_tokens) {
  sample::Params p = d.params;
  int64_t& least = p.processors.min_new_tokens;
  if (d.requested_least && *d.requested_least > max_new_tokens)
    return bad_input("--min-new-tokens " + std::to_string(*d.requested_least) + " is above " +
                     std::to_string(max_new_tokens) + ", the most new tokens of this answer");
  least = d.requested_least ? *d.requested_least
                            : d.config.min_new_tokens.value_or(d.config.min_length.value_or(0) - tokens);
  least = m.stop_tokens.empty() ? 0 : std::clamp<int64_t>(least, 0, max_new_tokens);
  if (tokens != 1) p.processors.forced_bos_token_id = -1;
  if (p.processors.short_circuit_length >= max_new_tokens)  // receipt.21: it has no effect
    p.processors.short_circuit_length = 0, p.processors.short_circuit_token = -1;
  return p;
}

Result<int64_t> new_tokens(const ModelFolder& m, const DecodingParams& d, int64_t tokens) {
  const int64_t room = m.context - tokens;
  if (room < 1)
    return bad_input(std::to_string(tokens) + " tokens, but the context of " + m.identity.name + " is " +
                     std::to_string(m.context) + ": shorten it to at most " + std::to_string(m.context - 1));
  if (d.requested && *d.requested > room)
    return bad_input(std::to_string(tokens) + " tokens and " + std::to_string(*d.requested) +
                     " new ones exceed the context of " + std::to_string(m.context) +
                     ": use --max-new-tokens " + std::to_string(room) + " or less");
  if (d.requested) return *d.requested;
  if (d.config.max_new_tokens) return std::min(*d.config.max_new_tokens, room);
  if (!d.config.max_length) return std::min(d.standard, room);
  if (*d.config.max_length <= tokens)
    return bad_input(std::to_string(tokens) + " tokens, but max_length of the model's settings is " +
                     std::to_string(*d.config.max_length) + ": pass --max-new-tokens");
  return std::min(*d.config.max_length - tokens, room);
}

int64_t new_tokens_as_given(const ModelFolder& m, const DecodingParams& d) {
  const auto given = d.requested               ? *d.requested
                     : d.config.max_new_tokens ? *d.config.max_new_tokens
                                               : d.config.max_length.value_or(kMaxNewTokens);
  return std::min(given, m.context);
}

}  // namespace invar::generate
