// The validated config.json of an encoder (spec/encoder.md encoder.1 to encoder.3), and what its
// folder says of pooling.
#pragma once

#include <string>

#include "base/status.h"
#include "base/text/json.h"
#include "checkpoint/recipes/encoder/encoder.h"

namespace invar::checkpoint {

// `object` is the content of FOLDER/config.json, whose model_type is an encoder's.
Result<Encoder> read_encoder_config(const json::Value& object, const std::string& folder);

}  // namespace invar::checkpoint
