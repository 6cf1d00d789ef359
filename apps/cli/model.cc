#include "model.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace invar::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string hub_cache() {
  if (const char* v = std::getenv("HF_HUB_CACHE")) return v;
  if (const char* v = std::getenv("HF_HOME")) return std::string(v) + "/hub";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : ".") + "/.cache/huggingface/hub";
}

Result<json> parse_object(const std::string& path, std::string_view text) {
  json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return bad_input(path + ": not a JSON object");
  return j;
}

// An absent file is an empty object.
Result<json> optional_object(const std::string& path) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return json::object();
  INVAR_TRY(std::string text, read_file(path));
  return parse_object(path, text);
}

Result<std::vector<int32_t>> token_list(const json& j, const std::string& where) {
  std::vector<int32_t> out;
  if (j.is_null()) return out;
  for (const json& t : j.is_array() ? j : json::array({j})) {
    if (!t.is_number_integer() || t.get<int64_t>() < 0 || t.get<int64_t>() > INT32_MAX)
      return bad_input(where + ": not a token id");
    out.push_back(t.get<int32_t>());
  }
  return out;
}

}  // namespace

bool is_hub_name(const std::string& name) {
  const auto slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string::npos && name[0] != '.' &&
         name.find("..") == std::string::npos;
}

Result<Place> resolve(const std::string& model_name, const std::string& revision) {
  std::error_code ec;
  if (fs::is_directory(model_name, ec)) {
    fs::path p = fs::path(model_name).lexically_normal();
    if (!p.has_filename()) p = p.parent_path();
    if (p == "." || p.filename() == "..") p = fs::canonical(p, ec);
    return Place{p.filename().string(), "", model_name};
  }
  if (is_hub_name(model_name)) {
    const auto slash = model_name.find('/');
    const std::string repo =
        hub_cache() + "/models--" + model_name.substr(0, slash) + "--" + model_name.substr(slash + 1);
    const auto snapshot = [&](const std::string& r) { return repo + "/snapshots/" + r; };
    const bool plain = !revision.empty() && revision.find_first_not_of("0123456789abcdef") == revision.npos;
    if (plain && fs::is_directory(snapshot(revision), ec))
      return Place{model_name, revision, snapshot(revision)};
    if (auto ref = read_file(repo + "/refs/main")) {
      std::string main = *ref;
      while (!main.empty() && (main.back() == '\n' || main.back() == ' ')) main.pop_back();
      if (fs::is_directory(snapshot(main), ec)) return Place{model_name, main, snapshot(main)};
    }
    return bad_input("model " + model_name + ": no such folder, and not in the Hugging Face cache " +
                     hub_cache() + ": download it there first, or give a checkpoint folder");
  }
  return bad_input("model " + model_name + ": no such folder: give a checkpoint folder with config.json");
}

Result<Model> open_model(const Place& place) {
  const std::string dir = place.folder + "/";
  INVAR_TRY(std::string config_text, read_file(dir + "config.json"));
  INVAR_TRY(json config, parse_object(dir + "config.json", config_text));
  INVAR_TRY(std::string tokenizer_text, read_file(dir + "tokenizer.json"));
  INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse(tokenizer_text, dir + "tokenizer.json"));
  INVAR_TRY(json tokenizer_config, optional_object(dir + "tokenizer_config.json"));
  INVAR_TRY(json generation, optional_object(dir + "generation_config.json"));

  Model m{place.name,
          place.revision,
          place.folder,
          sha256(config_text),
          sha256(tokenizer_text),
          {},
          std::move(tokenizer),
          0,
          {},
          {}};
  std::string chat_template;
  if (auto it = tokenizer_config.find("chat_template"); it != tokenizer_config.end())
    chat_template = it->is_string() ? it->get<std::string>() : it->dump();
  m.chat_template = sha256(chat_template);

  const json context = config.value("max_position_embeddings", json());
  if (!context.is_number_integer() || context.get<int64_t>() < 1)
    return bad_input(dir + "config.json: max_position_embeddings is not a positive integer");
  m.context = context.get<int64_t>();
  const bool own = generation.contains("eos_token_id");
  INVAR_TRY(m.stop_tokens,
            token_list((own ? generation : config).value("eos_token_id", json()),
                       dir + (own ? "generation_config.json" : "config.json") + ": eos_token_id"));

  const std::string where = dir + "generation_config.json: ";
  auto number = [&](const char* key, auto fallback) -> Result<decltype(fallback)> {
    const json v = generation.value(key, json());
    if (v.is_null()) return fallback;
    if (!v.is_number()) return bad_input(where + key + " is not a number");
    return v.get<decltype(fallback)>();
  };
  m.defaults.do_sample = generation.value("do_sample", json(false)) == json(true);
  INVAR_TRY(m.defaults.temperature, number("temperature", 1.0f));
  INVAR_TRY(m.defaults.top_k, number("top_k", int32_t{0}));
  INVAR_TRY(m.defaults.top_p, number("top_p", 1.0f));
  return m;
}

Result<sample::Params> sampling(const Model& m, const SamplingOptions& o) {
  sample::Params p = m.defaults;
  if (o.temperature || o.top_k || o.top_p) p.do_sample = true;
  if (o.temperature) p.temperature = *o.temperature;
  if (o.top_k) p.top_k = *o.top_k;
  if (o.top_p) p.top_p = *o.top_p;
  p.seed = o.seed;
  if (o.no_do_sample) p = sample::Params{};
  INVAR_CHECK_OK(sample::check(p));
  return p;
}

}  // namespace invar::cli
