// The validated config.json of an encoder (spec/encoder.md encoder.1 to encoder.3), and what its
// folder says of pooling.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "checkpoint/recipes/encoder/encoder.h"

namespace invar::checkpoint {

// `object` is the content of FOLDER/config.json, whose model_type is an encoder's.
Result<Encoder> read_encoder_config(const nlohmann::json& object, const std::string& folder);

}  // namespace invar::checkpoint
