// The validated config.json of a checkpoint. A setting that would change results and is not
// supported is refused by name (spec/checkpoint.md onnx.4).
#pragma once

#include <string>

#include "base/status.h"
#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/formats/quantization.h"
#include "checkpoint/recipes/decoder.h"

namespace invar::checkpoint {

// Reads FOLDER/config.json and, for the end-of-text ids, FOLDER/generation_config.json if present.
// `packed`: receives what quantization_config says of the weights; without it the key is refused.
Result<Decoder> read_config(const std::string& folder, bool long_context = false,
                            Quantization* packed = nullptr);

// Refuses what a config.json asks for beyond the keys that its family has read, unless the value
// says what `model` does anyway.
Status check_settings(const json::Value& object, const ConfigReader& read, const Decoder* model = nullptr);

}  // namespace invar::checkpoint
