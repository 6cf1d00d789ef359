// A model folder that holds an ONNX model in the place of a checkpoint (onnx.32).
#pragma once

#include <string>

#include "base/status.h"
#include "base/text/json.h"

namespace invar::generate {

// The path of the ONNX model, as exporters name it; "" where the folder has weights of a checkpoint
// or no such file. bad_input: genai_config.json names a file that is not there.
Result<std::string> onnx_model_in(const std::string& folder);
// The name of the file of settings: config.json, or genai_config.json where there is none.
std::string onnx_config_file(const std::string& folder);
// The most tokens of prompt and answer as the settings say it; null where they do not.
json::Value context_of(const json::Value& config);
// The ids that end an answer; null where the settings have none.
json::Value stop_tokens_of(const json::Value& config);

}  // namespace invar::generate
