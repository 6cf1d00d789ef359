// Which model architectures the exporter supports (spec/checkpoint.md onnx.4). Header-only, since
// builds without the exporter check it, too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace invar::checkpoint {

// A JSON value as short text for errors.
inline std::string short_text(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Checks the config.json object `config`; errors begin with its path `where`.
inline Status check_architecture(const nlohmann::json& config, const std::string& where) {
  const auto names = config.find("architectures"), type = config.find("model_type");
  if (names != config.end() && !names->is_null() && *names != nlohmann::json::array({"LlamaForCausalLM"}))
    return not_covered(where + ": architecture " + short_text(*names) +
                       " is not covered; only LlamaForCausalLM is");
  if (type == config.end() || *type != "llama")
    return not_covered(where + ": model_type " + (type == config.end() ? "(absent)" : short_text(*type)) +
                       " is not covered; only \"llama\" is");
  return {};
}

}  // namespace invar::checkpoint
