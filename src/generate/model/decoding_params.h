// How tokens are chosen and how many: what the caller gave, else the checkpoint's
// generation_config.json.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "generate/model/generation_config.h"
#include "generate/model_folder.h"
#include "generate/options.h"
#include "sample/sample.h"

namespace invar::generate {

struct DecodingParams {
  sample::Params params;
  std::optional<int64_t> requested;  // max_new_tokens of the caller: it must fit the context
  GenerationConfig config;           // whose length is cut to what fits
};
Result<DecodingParams> decoding_params(const ModelFolder&, const SamplingOptions&);
// At most so many tokens after a prompt of `tokens`.
Result<int64_t> new_tokens(const ModelFolder&, const DecodingParams&, int64_t tokens);

}  // namespace invar::generate
