#include "generate/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "checkpoint/architecture.h"
#include "generate/model/chat_template_text.h"
#include "generate/model/generation_config.h"
#include "generate/onnx/onnx_folder.h"

namespace invar::generate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr FileKind kConfigFile{"a file of settings", uint64_t{16} << 20},
    kTokenizerFile{"a tokenizer", uint64_t{256} << 20};

Result<json> parse_object(const std::string& path, std::string_view text) {
  json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (j.is_discarded()) return bad_input(path + ": not well-formed JSON, or a number in it is out of range");
  if (!j.is_object()) return bad_input(path + ": not a JSON object");
  return j;
}

// An absent file is an empty object.
Result<json> optional_object(const std::string& path) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return json::object();
  INVAR_TRY(std::string text, read_file(path, kConfigFile));
  return parse_object(path, text);
}

Result<std::vector<int32_t>> token_list(const json& j, const std::string& where) {
  std::vector<int32_t> out;
  if (j.is_null()) return out;
  for (const json& t : j.is_array() ? j : json::array({j})) {
    if (!t.is_number_integer() || t.get<int64_t>() < 0 || t.get<int64_t>() > INT32_MAX)
      return bad_input(where + " = " + checkpoint::short_text(t) + " is not a token id");
    out.push_back(t.get<int32_t>());
  }
  return out;
}

// How a tokenizer.json that is absent is made.
Status check_tokenizer(const std::string& folder) {
  std::error_code ec;
  if (fs::exists(folder + "/tokenizer.json", ec) || ec) return {};
  return bad_input(folder +
                   ": no tokenizer.json: make it with transformers, python3 -c \"from transformers import "
                   "AutoTokenizer as T; T.from_pretrained('FOLDER').save_pretrained('FOLDER')\", where "
                   "FOLDER is this one");
}

}  // namespace

std::vector<int32_t> ascending(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<prompt::ChatTemplates> open_chat_templates(const ModelLocation& location) {
  const std::string dir = location.folder + "/";
  INVAR_TRY(const json config, optional_object(dir + "tokenizer_config.json"));
  json older = json::object();
  if (!config.contains("added_tokens_decoder")) {
    INVAR_TRY(older, optional_object(dir + "special_tokens_map.json"));
  }
  return read_chat_templates(location.folder, config, older);
}

Result<ModelFolder> open_model(const ModelLocation& location) {
  const std::string dir = location.folder + "/";
  INVAR_TRY(const std::string onnx_model, onnx_model_in(location.folder));
  const std::string config_file =
      dir + (onnx_model.empty() ? "config.json" : onnx_config_file(location.folder));
  INVAR_TRY(std::string config_text, read_file(config_file, kConfigFile));
  INVAR_TRY(json config, parse_object(config_file, config_text));
  std::string key = "max_position_embeddings";
  uint64_t standard = 2048;  // transformers' default
  if (onnx_model.empty()) {
    INVAR_TRY(const auto* architecture, checkpoint::find_architecture(config, config_file));
    key = architecture->max_positions_key;
    standard = static_cast<uint64_t>(architecture->max_positions);
  }
  json context = onnx_model.empty() ? config.value(key, json()) : context_of(config);
  if (context.is_null()) context = standard;
  if (!context.is_number_unsigned() || context.get<uint64_t>() < 1 || context.get<uint64_t>() > INT32_MAX)
    return bad_input(config_file + ": " + key + " = " + checkpoint::short_text(context) +
                     " is not a size from 1 to 2^31 - 1");
  INVAR_CHECK_OK(check_tokenizer(location.folder));
  INVAR_TRY(std::string tokenizer_text, read_file(dir + "tokenizer.json", kTokenizerFile));
  INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse(tokenizer_text, dir + "tokenizer.json"));
  INVAR_TRY(json tokenizer_config, optional_object(dir + "tokenizer_config.json"));
  INVAR_CHECK_OK(tokenizer.check_config(tokenizer_config.dump(), dir + "tokenizer_config.json"));
  json older = json::object();
  if (!tokenizer_config.contains("added_tokens_decoder")) {
    INVAR_TRY(older, optional_object(dir + "special_tokens_map.json"));
    INVAR_CHECK_OK(tokenizer.check_config(older.dump(), dir + "special_tokens_map.json"));
  }
  INVAR_TRY(prompt::ChatTemplates templates, read_chat_templates(location.folder, tokenizer_config, older));

  ModelFolder m{{location.name, location.revision, sha256(config_text), sha256(tokenizer_text),
                 sha256(chat_template_text(templates)), std::string(prompt::unicode_version())},
                location.folder,
                std::move(tokenizer),
                context.get<int64_t>(),
                {},
                std::move(templates)};
  INVAR_TRY(const auto stop, read_stop_tokens(location.folder));
  if (stop) {
    m.stop_tokens = *stop;
  } else {
    INVAR_TRY(m.stop_tokens,
              token_list(onnx_model.empty() ? config.value("eos_token_id", json()) : stop_tokens_of(config),
                         config_file + ": eos_token_id"));
  }
  m.stop_tokens = ascending(std::move(m.stop_tokens));
  return m;
}

}  // namespace invar::generate
