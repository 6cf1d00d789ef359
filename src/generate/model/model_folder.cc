#include "generate/model/model_folder.h"

#include <algorithm>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "checkpoint/architecture.h"
#include "checkpoint/text_config.h"
#include "generate/model/chat_template_text.h"
#include "generate/onnx/onnx_folder.h"
#include "generate/settings/generation_config.h"

namespace invar::generate {
namespace {

using json::Value;

constexpr FileKind kConfigFile{"a file of settings", uint64_t{16} << 20},
    kTokenizerFile{"a tokenizer", uint64_t{256} << 20};
constexpr std::string_view kRanks = ".tiktoken";

Result<Value> parse_object(const std::string& path, std::string_view text) {
  INVAR_TRY(Value j, json::read(text, path));
  if (!j.is_object()) return bad_input(path + ": not a JSON object");
  return j;
}

// An absent file is an empty object.
Result<Value> optional_object(const std::string& path) {
  if (!exists(path)) return Value(Value::object);
  INVAR_TRY(std::string text, read_file(path, kConfigFile));
  return parse_object(path, text);
}

Result<std::vector<int32_t>> token_list(const Value& j, const std::string& where) {
  std::vector<int32_t> out;
  if (j.is_null()) return out;
  for (const Value& t : j.is_array() ? j.items : std::vector<Value>{j}) {
    if (!t.is_integer() || t.to_int64() < 0 || t.to_int64() > INT32_MAX)
      return bad_input(where + " = " + checkpoint::short_text(t) + " is not a token id");
    out.push_back(static_cast<int32_t>(t.to_int64()));
  }
  return out;
}

struct TokenizerFile {
  std::string content;
  prompt::Tokenizer tokenizer;
};

// The tokenizer of a checkpoint folder: tokenizer.json, else tokenizer.model, else the one
// *.tiktoken (spec/tokens.md tokens.16, tokens.18). `config` is tokenizer_config.json.
Result<TokenizerFile> read_tokenizer(const std::string& dir, const Value& config) {
  const std::string json_file = dir + "tokenizer.json", model_file = dir + "tokenizer.model";
  if (exists(json_file)) {
    INVAR_TRY(std::string content, read_file(json_file, kTokenizerFile));
    INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse(content, json_file));
    return TokenizerFile{std::move(content), std::move(tokenizer)};
  }
  if (exists(model_file)) {
    prompt::EndTokens ends;
    ends.begin = config.get("add_bos_token") != false;
    ends.end = config.get("add_eos_token") == true;
    INVAR_TRY(std::string content, read_file(model_file, kTokenizerFile));
    INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse_sentencepiece(content, model_file, ends));
    return TokenizerFile{std::move(content), std::move(tokenizer)};
  }
  std::vector<std::string> ranks;
  if (const auto names = names_in(dir))
    for (const std::string& name : *names)
      if (name.size() > kRanks.size() && name.ends_with(kRanks)) ranks.push_back(name);
  if (ranks.empty() && exists(dir + "source.spm"))
    return not_covered(
        dir +
        ": source.spm and target.spm, the tokenizers of Marian, are not covered: a "
        "tokenizer.json of the model is needed, as its copies for transformers.js on the hub have");
  if (ranks.size() != 1)
    return bad_input(
        dir + ": no tokenizer.json, no tokenizer.model and " + std::to_string(ranks.size()) +
        " *.tiktoken files: make a tokenizer.json with transformers, python3 -c \"from transformers "
        "import AutoTokenizer as T; T.from_pretrained('FOLDER').save_pretrained('FOLDER')\", where "
        "FOLDER is this one");
  const std::string file = dir + ranks[0], stem = ranks[0].substr(0, ranks[0].size() - kRanks.size());
  INVAR_TRY(std::string content, read_file(file, kTokenizerFile));
  INVAR_TRY(prompt::Tokenizer tokenizer, prompt::Tokenizer::parse_tiktoken(content, file, stem));
  return TokenizerFile{std::move(content), std::move(tokenizer)};
}

bool has_tokenizer(const std::string& dir) {
  if (exists(dir + "tokenizer.json") || exists(dir + "tokenizer.model")) return true;
  const auto names = names_in(dir);
  return names && std::ranges::any_of(*names, [](const std::string& n) { return n.ends_with(kRanks); });
}

// The same, whose settings ask for nothing else. They are those of tokenizer_config.json and, from
// older checkpoints, special_tokens_map.json.
Result<TokenizerFile> checked_tokenizer(const std::string& dir, Value& config, Value& older) {
  INVAR_TRY(config, optional_object(dir + "tokenizer_config.json"));
  INVAR_TRY(TokenizerFile file, read_tokenizer(dir, config));
  INVAR_CHECK_OK(file.tokenizer.check_config(json::dump(config), dir + "tokenizer_config.json"));
  older = Value::object;
  if (!config.contains("added_tokens_decoder")) {
    INVAR_TRY(older, optional_object(dir + "special_tokens_map.json"));
    INVAR_CHECK_OK(file.tokenizer.check_config(json::dump(older), dir + "special_tokens_map.json"));
  }
  return file;
}

}  // namespace

Result<prompt::Tokenizer> read_tokenizer(const ModelLocation& location) {
  Value config, older;
  INVAR_TRY(TokenizerFile file, checked_tokenizer(location.folder + "/", config, older));
  return std::move(file.tokenizer);
}

Result<TextTokenizer> open_tokenizer(const ModelLocation& location) {
  const std::string dir = location.folder + "/";
  Value config, older;
  INVAR_TRY(TokenizerFile file, checked_tokenizer(dir, config, older));
  if (const Value side = config.get("truncation_side"); !side.is_null() && side != "right")
    return not_covered(dir + "tokenizer_config.json: truncation_side " + checkpoint::short_text(side) +
                       " is not covered; right is");
  // transformers writes 10^30 where there is no bound.
  const Value most = config.get("model_max_length");
  const bool bound = most.is_number() && most.to_double() >= 1 && most.to_double() <= INT32_MAX;
  return TextTokenizer{std::move(file.tokenizer), bound ? static_cast<int64_t>(most.to_double()) : 0};
}

std::vector<int32_t> ascending(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<prompt::ChatTemplates> open_chat_templates(const ModelLocation& location) {
  const std::string dir = location.folder + "/";
  INVAR_TRY(const Value config, optional_object(dir + "tokenizer_config.json"));
  Value older = Value::object;
  if (!config.contains("added_tokens_decoder")) {
    INVAR_TRY(older, optional_object(dir + "special_tokens_map.json"));
  }
  return read_chat_templates(location.folder, config, older);
}

// Says what is in a folder that has no config.json.
static Error no_config(const std::string& folder) {
  if (exists(folder + "/adapter_config.json"))
    return no_model(
        folder,
        "adapter_config.json and no config.json: an adapter of PEFT (LoRA) alone: give its model with "
        "--model-name, and this folder with --adapter");
  return no_model(
      folder,
      "no config.json in it: give the folder of a checkpoint, which holds config.json, weights in "
      "safetensors files and the tokenizer's files");
}

Result<std::string> onnx_model_of(const ModelLocation& location) {
  if (!location.onnx_model.empty()) return location.onnx_model;
  return onnx_model_in(location.folder);
}

// What the decoder of a model with an encoder takes before the answer, as transformers finds it.
static Result<std::vector<int32_t>> decoder_start(const std::string& folder, const Value& config,
                                                  const std::string& config_file) {
  const std::string generation_file = folder + "/generation_config.json";
  INVAR_TRY(const Value generation, optional_object(generation_file));
  for (const char* key : {"decoder_start_token_id", "bos_token_id"})
    for (const auto& [object, where] : {std::pair{&generation, &generation_file}, {&config, &config_file}}) {
      INVAR_TRY(std::vector<int32_t> start, token_list(object->get(key), *where + ": " + key));
      if (start.size() > 1) return not_covered(*where + ": " + key + " of several tokens is not covered");
      if (!start.empty()) return start;
    }
  return bad_input(config_file + ": no decoder_start_token_id, with which the answers of this model begin");
}

Result<ModelFolder> open_model(const ModelLocation& location) {
  const std::string dir = location.folder + "/";
  INVAR_TRY(const std::string onnx_model, onnx_model_of(location));
  const std::string config_file =
      dir + (onnx_model.empty() ? "config.json" : onnx_config_file(location.folder));
  std::string config_text;
  Value config = Value::object;
  if (exists(config_file)) {
    INVAR_TRY(config_text, read_file(config_file, kConfigFile));
    INVAR_TRY(config, parse_object(config_file, config_text));
  } else if (onnx_model.empty()) {
    return no_config(location.folder);
  }
  std::string key = "max_position_embeddings";
  std::string whole;
  bool has_encoder = false, hears = false;
  uint64_t standard = 2048;  // transformers' default
  if (onnx_model.empty()) {
    INVAR_TRY(checkpoint::TextConfig text, checkpoint::text_config_of(config, config_file));
    config = std::move(text.config);
    if (text.whole) whole = text.whole->model_type;
    INVAR_TRY(const auto* architecture, checkpoint::find_architecture(config, config_file));
    key = architecture->max_positions_key, has_encoder = architecture->has_encoder;
    hears = architecture->hears;
    standard = static_cast<uint64_t>(architecture->max_positions);
  }
  Value context = onnx_model.empty() ? (key.empty() ? Value() : config.get(key)) : context_of(config);
  if (context.is_null()) context = standard;
  if (!context.is_unsigned() || context.to_uint64() < 1 || context.to_uint64() > INT32_MAX)
    return bad_input(config_file + ": " + key + " = " + checkpoint::short_text(context) +
                     " is not a size from 1 to 2^31 - 1");
  checkpoint::ServedPositions positions{context.to_int64(), context.to_int64()};
  if (onnx_model.empty()) positions = checkpoint::served_positions(config, positions.most);
  Value tokenizer_config = Value::object, older = Value::object;
  TokenizerFile file{"", prompt::Tokenizer::of_ids()};
  std::vector<std::string> missing;
  if (onnx_model.empty() || has_tokenizer(dir)) {
    INVAR_TRY(file, checked_tokenizer(dir, tokenizer_config, older));
  } else {
    missing.push_back("no tokenizer: prompt and answer are token ids, as \"1 15 300\"");
  }
  INVAR_TRY(prompt::ChatTemplates templates, read_chat_templates(location.folder, tokenizer_config, older));

  ModelFolder m{
      {location.name, location.revision, sha256(config_text), sha256(file.content),
       sha256(chat_template_text(templates)), std::string(prompt::unicode_version()), std::move(whole)},
      location.folder,
      std::move(file.tokenizer),
      positions.most,
      {},
      std::move(templates),
      positions.original,
      std::move(missing)};
  INVAR_TRY(const auto stop, read_stop_tokens(location.folder));
  if (stop) {
    m.stop_tokens = *stop;
  } else {
    INVAR_TRY(m.stop_tokens,
              token_list(onnx_model.empty() ? config.get("eos_token_id") : stop_tokens_of(config),
                         config_file + ": eos_token_id"));
  }
  m.stop_tokens = ascending(std::move(m.stop_tokens));
  if (has_encoder) {
    INVAR_TRY(m.decoder_tokens, decoder_start(location.folder, config, config_file));
    m.source_context = m.context;
  }
  if (hears) {
    INVAR_TRY(const Value generation, optional_object(location.folder + "/generation_config.json"));
    INVAR_TRY(m.speech, read_speech(location.folder, config, generation, m.decoder_tokens[0]));
  }
  if (m.stop_tokens.empty() && config_text.empty())
    m.missing.push_back(
        "no end token (eos_token_id of generation_config.json): answers run to --max-new-tokens");
  return m;
}

}  // namespace invar::generate
