// How tokens are chosen and how many: what the caller gave, else the checkpoint's
// generation_config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/model/model_folder.h"
#include "generate/options.h"
#include "generate/settings/generation_config.h"
#include "sample/sample.h"

namespace invar::generate {

struct DecodingParams {
  sample::Params params;                  // but for what depends on the prompt
  std::vector<std::string> stop_strings;  // ascending, each once
  bool stop_in_answer = false;            // not where there are none
  std::vector<int32_t> stop_tokens;       // ascending, each once: the model's, and those that were asked for
  std::vector<int32_t> stop_token_ids;    // the latter
  bool ignore_eos = false;                // without the model's
  std::optional<int64_t> requested, requested_least;  // max_new_tokens and min_new_tokens of the caller
  int64_t standard = kMaxNewTokens;                   // where neither says how many
  GenerationConfig config;                            // whose lengths are cut to what fits
};
Result<DecodingParams> decoding_params(const ModelFolder&, const SamplingOptions&);
// The most tokens after a prompt of `tokens`.
Result<int64_t> new_tokens(const ModelFolder&, const DecodingParams&, int64_t tokens);
// The same without regard to the prompt but for its program: where it is more than new_tokens(),
// that tells how many tokens the prompt has.
int64_t new_tokens_as_given(const ModelFolder&, const DecodingParams&, int64_t tokens);
// Parameters for a prompt of so many tokens; a setting without effect on it is off (receipt.21).
Result<sample::Params> params_for(const ModelFolder&, const DecodingParams&, int64_t tokens,
                                  int64_t max_new_tokens);
// Of an answer of at most so many tokens.
void fit_length(sample::Processors&, int64_t max_new_tokens);

}  // namespace invar::generate
