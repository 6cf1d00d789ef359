// A model folder that holds an ONNX model in the place of a checkpoint (onnx.32).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace invar::generate {

// The path of the ONNX model, as exporters name it; "" where the folder has weights of a checkpoint
// or no such file. bad_input: genai_config.json names a file that is not there.
Result<std::string> onnx_model_in(const std::string& folder);
// The name of the file of settings: config.json, or genai_config.json where there is none.
std::string onnx_config_file(const std::string& folder);
// The most tokens of prompt and answer as the settings say it; null where they do not.
nlohmann::json context_of(const nlohmann::json& config);
// The ids that end an answer; null where the settings have none.
nlohmann::json stop_tokens_of(const nlohmann::json& config);

}  // namespace invar::generate
