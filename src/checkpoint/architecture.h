// Which checkpoints the exporter knows, asked before anything else of their config.json (spec/onnx.md onnx.4). A header
// alone, since builds without the exporter ask, too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace invar::checkpoint {

inline std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// `config` is the object in the file `where`.
inline Status check_architecture(const nlohmann::json& config, const std::string& where) {
  const auto names = config.find("architectures"), type = config.find("model_type");
  if (names != config.end() && !names->is_null() && *names != nlohmann::json::array({"LlamaForCausalLM"}))
    return not_covered(where + ": architecture " + shown(*names) +
                       " is not covered; only LlamaForCausalLM is");
  if (type == config.end() || *type != "llama")
    return not_covered(where + ": model_type " + (type == config.end() ? "(absent)" : shown(*type)) +
                       " is not covered; only \"llama\" is");
  return {};
}

}  // namespace invar::checkpoint
