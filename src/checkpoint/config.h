// The validated config.json of a checkpoint. A setting that would change results and is not
// supported is refused by name (spec/checkpoint.md onnx.4).
#pragma once

#include <string>

#include "base/status.h"
#include "checkpoint/recipes/decoder.h"

namespace invar::checkpoint {

// Reads FOLDER/config.json and, for the end-of-text ids, FOLDER/generation_config.json if present.
Result<Decoder> read_config(const std::string& folder);

}  // namespace invar::checkpoint
