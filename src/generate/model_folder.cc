#include "generate/model_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "base/text/json.h"
#include "checkpoint/architecture.h"
#include "generate/model/chat_template_text.h"
#include "generate/model/generation_config.h"

namespace invar::generate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr FileKind kConfigFile{"a file of settings", uint64_t{16} << 20},
    kTokenizerFile{"a tokenizer", uint64_t{256} << 20};

std::string hub_cache() {
  if (const char* v = std::getenv("HF_HUB_CACHE")) return v;
  if (const char* v = std::getenv("HF_HOME")) return std::string(v) + "/hub";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : ".") + "/.cache/huggingface/hub";
}

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

struct TokenizerFile {
  std::string content;
  prompt::Tokenizer tokenizer;
};

// The tokenizer of a checkpoint folder: tokenizer.json, else tokenizer.model, else the one
// *.tiktoken (spec/tokens.md tokens.16, tokens.18). `config` is tokenizer_config.json.
Result<TokenizerFile> read_tokenizer(const std::string& dir, const json& config) {
  std::error_code ec;
  const std::string json_file = dir + "tokenizer.json", model_file = dir + "tokenizer.model";
  if (fs::exists(json_file, ec)) {
    INVAR_TRY(std::string content, read_file(json_file, kTokenizerFile));
    INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse(content, json_file));
    return TokenizerFile{std::move(content), std::move(tokenizer)};
  }
  if (fs::exists(model_file, ec)) {
    prompt::EndTokens ends;
    ends.begin = config.value("add_bos_token", json()) != false;
    ends.end = config.value("add_eos_token", json()) == true;
    INVAR_TRY(std::string content, read_file(model_file, kTokenizerFile));
    INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse_sentencepiece(content, model_file, ends));
    return TokenizerFile{std::move(content), std::move(tokenizer)};
  }
  std::vector<fs::path> ranks;
  for (const auto& entry : fs::directory_iterator(dir, ec))
    if (entry.path().extension() == ".tiktoken") ranks.push_back(entry.path());
  if (ranks.size() != 1)
    return bad_input(dir + ": no tokenizer.json, no tokenizer.model and " + std::to_string(ranks.size()) +
                     " *.tiktoken files: make a tokenizer.json with AutoTokenizer.from_pretrained(FOLDER)"
                     ".save_pretrained(FOLDER) of transformers");
  INVAR_TRY(std::string content, read_file(ranks[0].string(), kTokenizerFile));
  INVAR_TRY(prompt::Tokenizer tokenizer,
            prompt::Tokenizer::parse_tiktoken(content, ranks[0].string(), ranks[0].stem().string()));
  return TokenizerFile{std::move(content), std::move(tokenizer)};
}

}  // namespace

std::vector<int32_t> ascending(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool is_hub_name(const std::string& name) {
  const auto slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string::npos && name[0] != '.' &&
         name.find("..") == std::string::npos;
}

Result<ModelLocation> resolve(const std::string& model_name, const std::string& revision) {
  std::error_code ec;
  if (model_name.find('\0') != model_name.npos)
    return bad_input("model " + invar::json::quote(model_name) +
                     ": a path without a NUL character is needed");
  if (fs::is_directory(model_name, ec)) {
    fs::path p = fs::path(model_name).lexically_normal();
    if (!p.has_filename()) p = p.parent_path();
    if (p == "." || p.filename() == "..") p = fs::canonical(p, ec);
    return ModelLocation{p.filename().string(), "", model_name};
  }
  if (is_hub_name(model_name)) {
    const auto slash = model_name.find('/');
    const std::string repo =
        hub_cache() + "/models--" + model_name.substr(0, slash) + "--" + model_name.substr(slash + 1);
    const auto snapshot = [&](const std::string& r) { return repo + "/snapshots/" + r; };
    const bool plain = !revision.empty() && revision.find_first_not_of("0123456789abcdef") == revision.npos;
    if (plain && fs::is_directory(snapshot(revision), ec))
      return ModelLocation{model_name, revision, snapshot(revision)};
    if (auto ref = read_file(repo + "/refs/main", kConfigFile)) {
      std::string main = *ref;
      while (!main.empty() && (main.back() == '\n' || main.back() == ' ')) main.pop_back();
      const bool name = main.find_first_of(std::string_view("/\0", 2)) == main.npos && main != "..";
      if (name && fs::is_directory(snapshot(main), ec))
        return ModelLocation{model_name, main, snapshot(main)};
    }
    return bad_input("model " + model_name + ": no such folder, and not in the Hugging Face cache " +
                     hub_cache() + ": download it there first, or give a checkpoint folder");
  }
  return bad_input("model " + model_name + ": no such folder: give a checkpoint folder with config.json");
}

Result<ModelFolder> open_model(const ModelLocation& location) {
  const std::string dir = location.folder + "/";
  INVAR_TRY(std::string config_text, read_file(dir + "config.json", kConfigFile));
  INVAR_TRY(json config, parse_object(dir + "config.json", config_text));
  INVAR_CHECK_OK(checkpoint::check_architecture(config, dir + "config.json"));
  json context = config.value("max_position_embeddings", json());
  if (context.is_null()) context = 2048u;  // transformers' default
  if (!context.is_number_unsigned() || context.get<uint64_t>() < 1 || context.get<uint64_t>() > INT32_MAX)
    return bad_input(dir + "config.json: max_position_embeddings = " + checkpoint::short_text(context) +
                     " is not a size from 1 to 2^31 - 1");
  INVAR_TRY(json tokenizer_config, optional_object(dir + "tokenizer_config.json"));
  INVAR_TRY(TokenizerFile file, read_tokenizer(dir, tokenizer_config));
  INVAR_CHECK_OK(file.tokenizer.check_config(tokenizer_config.dump(), dir + "tokenizer_config.json"));
  if (!tokenizer_config.contains("added_tokens_decoder")) {
    INVAR_TRY(const json older, optional_object(dir + "special_tokens_map.json"));
    INVAR_CHECK_OK(file.tokenizer.check_config(older.dump(), dir + "special_tokens_map.json"));
  }
  INVAR_TRY(const std::string chat_template, read_chat_template(location.folder, tokenizer_config));

  ModelFolder m{{location.name, location.revision, sha256(config_text), sha256(file.content),
                 sha256(chat_template), std::string(prompt::unicode_version())},
                location.folder,
                std::move(file.tokenizer),
                context.get<int64_t>(),
                {}};
  INVAR_TRY(const auto stop, read_stop_tokens(location.folder));
  if (stop) {
    m.stop_tokens = *stop;
  } else {
    INVAR_TRY(m.stop_tokens,
              token_list(config.value("eos_token_id", json()), dir + "config.json: eos_token_id"));
  }
  m.stop_tokens = ascending(std::move(m.stop_tokens));
  return m;
}

}  // namespace invar::generate
