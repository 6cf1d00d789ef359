#include "generate/settings/decoding_params.h"

#include <algorithm>
#include <utility>

#include "generate/engine/generation_loop.h"
#include "generate/settings/settings_table.h"
#include "generate/settings/structured.h"

namespace invar::generate {

namespace {

// The settings of `first`, else of `second`.
GenerationSettings first_of(GenerationSettings first, const GenerationSettings& second) {
  for_each_setting([&](const SettingRow&, auto member, auto) {
    if (!(first.*member)) first.*member = second.*member;
  });
  return first;
}

sample::Params drawing_params(const GenerationSettings& s, int32_t top_k) {
  sample::Params p;
  p.top_k = top_k;
  set_given(p, s);
  return p;
}

// receipt.21: what draws nothing decides nothing, so greedy parameters are those of Params{}, and
// the ranges of the checkpoint's do not matter.
Result<sample::Params> params_of(const GenerationSettings& s, bool do_sample, int32_t top_k,
                                 const SamplingOptions& o) {
  sample::Params p;
  if (do_sample) p = drawing_params(s, top_k), p.seed = o.seed, p.stream = o.stream;
  set_given(p.processors, s);
  // What adds nothing is off, however it is spelled.
  std::erase_if(p.processors.logit_bias, [](const sample::LogitBias& b) { return b.bias == 0; });
  for (float* const x : {&p.processors.frequency_penalty, &p.processors.presence_penalty})
    if (*x == 0) *x = 0;
  p.do_sample = do_sample;
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

// vLLM's stop_token_ids and ignore_eos (sampling.31).
Status take_stop_tokens(const ModelFolder& m, const GenerationSettings& s, DecodingParams& d) {
  d.ignore_eos = s.ignore_eos.value_or(false) && !m.stop_tokens.empty();
  d.stop_token_ids = ascending(s.stop_token_ids.value_or(d.stop_token_ids));
  if (!d.ignore_eos)
    std::erase_if(d.stop_token_ids, [&](int32_t t) { return std::ranges::count(m.stop_tokens, t) > 0; });
  d.stop_tokens = d.stop_token_ids;
  if (!d.ignore_eos) d.stop_tokens.insert(d.stop_tokens.end(), m.stop_tokens.begin(), m.stop_tokens.end());
  d.stop_tokens = ascending(std::move(d.stop_tokens));
  for (const auto& [name, list] : {std::pair("stop_token_ids", &d.stop_token_ids),
                                   std::pair("allowed_token_ids", &d.params.processors.allowed_token_ids)})
    for (const int32_t t : *list)
      if (t >= m.tokenizer.vocab_size())
        return bad_input(std::string(name) + ": id " + std::to_string(t) + " is not in the vocabulary of " +
                         std::to_string(m.tokenizer.vocab_size()) + " tokens");
  return {};
}

// vLLM's bad_words: the tokens of each text, and those that it has behind a space (sampling.30).
Status take_bad_words(const ModelFolder& m, const GenerationSettings& s, DecodingParams& d) {
  auto& words = d.params.processors.bad_words_ids;
  for (const std::string& text : s.bad_words.value_or(std::vector<std::string>())) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == text.npos) return bad_input("a bad word is empty: leave it out");
    const std::string word = text.substr(begin);
    INVAR_TRY(std::vector<int32_t> alone, m.tokenizer.encode(word, /*add_special_tokens=*/false));
    INVAR_TRY(std::vector<int32_t> behind, m.tokenizer.encode(" " + word, /*add_special_tokens=*/false));
    const bool other = !alone.empty() && behind.size() == alone.size() && behind[0] != alone[0];
    if (other) words.push_back(std::move(behind));
    if (!alone.empty()) words.push_back(std::move(alone));
  }
  words = each_once(std::move(words));
  return {};
}

}  // namespace

Result<sample::Params> sampling_params(const SamplingOptions& o) {
  INVAR_TRY(const bool do_sample, draws(o, false));
  return params_of(o, do_sample, 0, o);
}

Result<DecodingParams> decoding_params(const ModelFolder& m, const SamplingOptions& o) {
  DecodingParams d;
  d.requested = o.max_new_tokens, d.requested_least = o.min_new_tokens;
  if (!o.no_generation_config) {
    INVAR_TRY(d.config, read_generation_config(m.folder, m.speech.has_value()));
  }
  if (o.forced_bos_token_id && m.decoder_tokens.empty())
    return bad_input(
        "a first token (--forced-bos-token-id) is for models with an encoder, whose answers begin with it: "
        "leave it out");
  INVAR_TRY(const bool do_sample, draws(o, d.config.do_sample.value_or(false)));
  const GenerationSettings settings = first_of(o, d.config);
  if (do_sample) {
    INVAR_CHECK_OK(d.config.drawing);
    if (const Status ranges = sample::check(drawing_params(settings, kTopK)); !ranges)
      return bad_input(d.config.path + ": " + ranges.error().message);
  }
  INVAR_TRY(d.params, params_of(settings, do_sample, kTopK, o));
  d.stop_strings = each_once(settings.stop_strings.value_or(d.stop_strings));
  d.stop_in_answer = settings.stop_in_answer.value_or(false) && !d.stop_strings.empty();
  if (std::ranges::count(d.stop_strings, "") > 0)
    return bad_input("a stop text is empty, and would end every answer at once: leave it out");
  INVAR_CHECK_OK(take_stop_tokens(m, settings, d));
  INVAR_CHECK_OK(take_bad_words(m, settings, d));
  sample::Processors& p = d.params.processors;
  std::erase_if(p.bad_words_ids, [&](const std::vector<int32_t>& word) {  // sampling.13
    return word.size() == 1 && std::ranges::count(d.stop_tokens, word[0]) > 0;
  });
  if (!p.structured_outputs.empty()) {
    INVAR_TRY(p.structured_outputs, grammar::canonical(p.structured_outputs, "structured_outputs"));
    INVAR_CHECK_OK(bind_constraint(m, p));
  }
  return d;
}

Result<sample::Params> params_for(const ModelFolder&, const DecodingParams& d, int64_t tokens,
                                  int64_t max_new_tokens) {
  sample::Params p = d.params;
  int64_t& least = p.processors.min_new_tokens;
  if (d.requested_least && *d.requested_least > max_new_tokens)
    return bad_input("--min-new-tokens " + std::to_string(*d.requested_least) + " is above " +
                     std::to_string(max_new_tokens) + ", the most new tokens of this answer");
  least = d.requested_least ? *d.requested_least
                            : d.config.min_new_tokens.value_or(d.config.min_length.value_or(0) - tokens);
  least = d.stop_tokens.empty() ? 0 : std::max<int64_t>(least, 0);
  if (tokens != 1) p.processors.forced_bos_token_id = -1;
  fit_length(p.processors, max_new_tokens);
  return p;
}

void fit_length(sample::Processors& p, int64_t max_new_tokens) {
  p.min_new_tokens = std::min(p.min_new_tokens, max_new_tokens);
  if (p.short_circuit_length >= max_new_tokens)  // receipt.21: it has no effect
    p.short_circuit_length = 0, p.short_circuit_token = -1;
}

Result<int64_t> new_tokens(const ModelFolder& m, const DecodingParams& d, int64_t tokens) {
  const int64_t context = m.context_of(tokens), room = context - tokens;
  const std::string longer =  // decoder.29
      context == m.context ? ""
                           : ", or a prompt of more than " + std::to_string(context) +
                                 " tokens: it has LongRoPE's long factors, and no sequence may change them";
  if (room < 1)
    return bad_input(std::to_string(tokens) + " tokens, but the context of " + m.identity.name + " is " +
                     std::to_string(context) + ": shorten it to at most " + std::to_string(context - 1) +
                     longer);
  if (d.requested && *d.requested > room)
    return bad_input(std::to_string(tokens) + " tokens and " + std::to_string(*d.requested) +
                     " new ones exceed the context of " + std::to_string(context) +
                     ": use --max-new-tokens " + std::to_string(room) + " or less" + longer);
  if (d.requested) return *d.requested;
  if (d.config.max_new_tokens) return std::min(*d.config.max_new_tokens, room);
  if (!d.config.max_length) return std::min(d.standard, room);
  if (*d.config.max_length <= tokens)
    return bad_input(std::to_string(tokens) + " tokens, but max_length of the model's settings is " +
                     std::to_string(*d.config.max_length) + ": pass --max-new-tokens");
  return std::min(*d.config.max_length - tokens, room);
}

int64_t new_tokens_as_given(const ModelFolder& m, const DecodingParams& d, int64_t tokens) {
  const auto given = d.requested               ? *d.requested
                     : d.config.max_new_tokens ? *d.config.max_new_tokens
                                               : d.config.max_length.value_or(kMaxNewTokens);
  return std::min(given, m.context_of(tokens));
}

}  // namespace invar::generate
