// generation_config.json: what a checkpoint says of its answers, read strictly
// (docs/reference/cli.md, "Defaults of a checkpoint").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/options.h"

namespace invar::generate {

struct GenerationConfig : GenerationSettings {
  std::optional<int64_t> max_length, min_length;  // of prompt and answer
  Status drawing;    // an error: what only matters where tokens are drawn is not covered
  std::string path;  // what errors call the file
};

constexpr int32_t kTopK = 50;  // transformers' default where tokens are drawn

// FOLDER/generation_config.json; an absent file says what `search` of genai_config.json says where
// the folder holds an ONNX model, else what an empty object says, and what config.json then says of
// generation is refused.
// `hears`: the model has the keys of those that hear.
Result<GenerationConfig> read_generation_config(const std::string& folder, bool hears = false);
// Its eos_token_id, where it has one.
Result<std::optional<std::vector<int32_t>>> read_stop_tokens(const std::string& folder);

}  // namespace invar::generate
