// The files of sentence-transformers (spec/encoder.md encoder.11).
#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/files/json.h"
#include "checkpoint/sentence.h"

namespace invar::checkpoint {
namespace {

namespace fs = std::filesystem;
using json::Value;
using onnx::quote;

// Older files have a switch for each mode; the modes stand one behind the other in this order.
constexpr std::pair<const char*, const char*> kModes[] = {
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"},
};

std::vector<std::string> pooling_modes(ConfigReader& r) {
  std::vector<std::string> modes;
  const Value* newer = r.find("pooling_mode");
  for (const auto& [key, mode] : kModes)
    if (r.flag(key) && !newer) modes.emplace_back(mode);
  for (const Value& mode : !newer              ? std::vector<Value>()
                           : newer->is_array() ? newer->items
                                               : std::vector<Value>{*newer}) {
    const auto known = std::ranges::find_if(kModes, [&](const auto& m) { return mode == Value(m.second); });
    if (known == std::end(kModes))
      r.refuse("'pooling_mode' = " + json::dump(mode) +
               " is not covered; cls, max, mean, mean_sqrt_len_tokens, "
               "weightedmean and lasttoken are");
    else
      modes.emplace_back(known->second);
  }
  if (!modes.empty()) return modes;
  if (newer || r.find("pooling_mode_mean_tokens")) r.reject("no pooling mode is chosen");
  return {"mean"};
}

Status read_pooling(const std::string& path, SentenceConfig& config) {
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(const Value settings, parse_json(text, path));
  ConfigReader r(settings, path);
  config.pooling = pooling_modes(r);
  r.size("word_embedding_dimension", 1);
  for (const auto& [key, value] : settings.members)
    if (key.starts_with("pooling_mode") && !r.was_read(key.c_str())) r.require_neutral(key.c_str(), false);
  config.include_prompt = r.flag("include_prompt", true);
  return r.status();
}

// The modules in turn: Transformer, Pooling, and perhaps Normalize.
Status read_modules(const std::string& folder, SentenceConfig& config) {
  const std::string path = folder + "/modules.json";
  INVAR_TRY(const std::string text, read_file(path));
  const Value modules = json::read_or_null(text);
  if (!modules.is_array() || modules.empty()) return bad_input(path + ": not a list of modules");
  constexpr const char* kOrder[] = {"Transformer", "Pooling", "Normalize"};
  for (size_t i = 0; i < modules.size(); ++i) {
    const std::string where = path + ": module " + std::to_string(i);
    if (!modules.items[i].is_object()) return bad_input(where + " is not an object");
    ConfigReader r(modules.items[i], where);
    const std::string type = r.text("type", ""), at = r.text("path", "");
    const std::string name = type.substr(type.rfind('.') + 1);
    INVAR_CHECK_OK(r.status());
    if (!type.starts_with("sentence_transformers.") || i >= std::size(kOrder) || name != kOrder[i])
      return not_covered(where + ", " + quote(type) +
                         ", is not covered; Transformer, Pooling and Normalize are, in this order");
    if (at.find("..") != at.npos || at.starts_with('/') || (i == 0 && !at.empty()))
      return not_covered(where + ": its path " + quote(at) + " is not covered");
    if (i == 1) {
      INVAR_CHECK_OK(read_pooling(folder + "/" + at + "/config.json", config));
    }
  }
  if (modules.size() == 1) return not_covered(path + ": a model without Pooling is not covered");
  config.normalize = modules.size() == 3;
  return {};
}

Status read_prompts(const std::string& folder, SentenceConfig& config) {
  const std::string path = folder + "/config_sentence_transformers.json";
  INVAR_TRY(const Value settings, optional_json(path));
  ConfigReader r(settings, path);
  const Value* found = r.find("prompts");
  if (found && !found->is_object()) r.reject("'prompts' is not an object");
  const Value prompts = found && found->is_object() ? *found : Value();
  for (const auto& [name, text] : prompts.members)
    if (text.is_string())
      config.prompts[name] = text.text;
    else if (!text.is_null())
      r.reject("the prompt " + quote(name) + " is not a text");
  config.default_prompt = r.text("default_prompt_name", "");
  if (!config.default_prompt.empty() && !config.prompts.contains(config.default_prompt))
    r.reject("'default_prompt_name' = " + quote(config.default_prompt) + " is none of the prompts");
  r.require_neutral("truncate_dim");
  return r.status();
}

}  // namespace

Result<int64_t> read_max_length(const std::string& folder) {
  const std::string path = folder + "/sentence_bert_config.json";
  INVAR_TRY(const Value settings, optional_json(path));
  ConfigReader r(settings, path);
  r.require_neutral("do_lower_case");
  const int64_t length = r.find("max_seq_length") ? r.size("max_seq_length", 0) : 0;
  INVAR_CHECK_OK(r.status());
  return length;
}

Result<SentenceConfig> read_sentence_config(const std::string& folder) {
  SentenceConfig config;
  std::error_code error;
  config.has_modules = fs::exists(folder + "/modules.json", error);
  if (config.has_modules) {
    INVAR_CHECK_OK(read_modules(folder, config));
  }
  INVAR_TRY(config.max_length, read_max_length(folder));
  INVAR_CHECK_OK(read_prompts(folder, config));
  return config;
}

}  // namespace invar::checkpoint
