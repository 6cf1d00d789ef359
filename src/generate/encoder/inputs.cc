#include "generate/encoder/inputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file/file.h"
#include "base/text/json.h"
#include "checkpoint/architecture.h"
#ifdef INVAR_COMPILER
#include "checkpoint/sentence.h"
#endif

namespace invar::generate {
namespace {

run::Tensor tensor_of(const std::vector<const std::vector<int32_t>*>& rows) {
  run::Tensor t;
  t.dtype = DType::i64;
  t.shape = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0]->size())};
  std::vector<int64_t> values;
  for (const std::vector<int32_t>* row : rows) values.insert(values.end(), row->begin(), row->end());
  t.bytes.resize(values.size() * sizeof(int64_t));
  std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

#ifdef INVAR_COMPILER
// The text in front of all others.
Result<std::string> prompt_of(const checkpoint::SentenceConfig& config, const EncoderOptions& options,
                              const std::string& model) {
  const std::string name = options.prompt_name.value_or(config.default_prompt);
  if (name.empty()) return std::string();
  const auto found = config.prompts.find(name);
  if (found == config.prompts.end()) {
    std::string known;
    for (const auto& [one, text] : config.prompts) known += (known.empty() ? "" : ", ") + one;
    return bad_input("--prompt-name " + name + ": the model " + model + " has " +
                     (known.empty() ? "no prompts" : "the prompts " + known));
  }
  if (!config.include_prompt && !found->second.empty())
    return not_covered(
        "model " + model +
        ": include_prompt is false, so tokens of a prompt are not pooled, which is not covered");
  return found->second;
}

// Whether transformers gives the model the types of the tokens: by the tokenizer's
// model_input_names, else by its class.
Result<bool> tokenizer_has_types(const std::string& folder) {
  using json::Value;
  const std::string path = folder + "/tokenizer_config.json";
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return true;
  INVAR_TRY(const std::string text, read_file(path));
  const Value config = json::read_or_null(text);
  if (!config.is_object()) return bad_input(path + ": not a JSON object");
  const Value &names = config.get("model_input_names"), &type = config.get("tokenizer_class");
  if (names.is_array()) return std::ranges::count(names.items, Value("token_type_ids")) > 0;
  if (!type.is_string()) return true;
  const auto& name = type.text;
  return name.starts_with("BertTokenizer") || name.starts_with("ElectraTokenizer");
}
#endif

}  // namespace

Result<EncoderInputs> EncoderInputs::open(const ModelLocation& location, const EncoderOptions& options,
                                          Observer& observer) {
#ifndef INVAR_COMPILER
  (void)options;
  (void)observer;
  return not_covered("model " + location.name + ": this build has no compiler, which encoders need");
#else
  INVAR_TRY(const checkpoint::TextEncoder model, checkpoint::read_text_encoder(location.folder));
  if (options.pairs && model.labels != 1)
    return not_covered("model " + location.name + ": " +
                       (model.labels == 0 ? "no classifier, so it gives no scores: `invar embed` runs it"
                                          : "a classifier of " + std::to_string(model.labels) +
                                                " labels is no reranker; one of one label is"));
  if (!options.pairs && model.labels > 0)
    return not_covered("model " + location.name +
                       ": a classifier gives scores and no vectors: `invar rerank` runs it");
  INVAR_TRY(TextTokenizer opened, open_tokenizer(location));
  EncoderInputs inputs(std::move(opened.tokenizer));
  const checkpoint::SentenceConfig& sentence = model.sentence;
  if (!options.pairs && !sentence.has_modules)
    observer.note("pooling", location.name +
                                 " has no modules.json: mean of all tokens, as sentence-transformers has it");
  if (!options.pairs) {
    INVAR_TRY(inputs.prompt_, prompt_of(sentence, options, location.name));
  }
  inputs.max_length_ = sentence.max_length ? sentence.max_length : model.max_positions;
  if (!sentence.max_length && opened.max_length)
    inputs.max_length_ = std::min(inputs.max_length_, opened.max_length);
  if (model.positions) inputs.max_length_ = std::min(inputs.max_length_, model.positions);
  inputs.has_token_types_ = model.has_token_types, inputs.pairs_ = options.pairs;
  inputs.normalizes_ = sentence.normalize;
  inputs.any_size_ = model.shorter.any, inputs.sizes_ = model.shorter.sizes;
  if (model.has_token_types) {
    INVAR_TRY(inputs.tokenizer_has_types_, tokenizer_has_types(location.folder));
  }
  return inputs;
#endif
}

Result<EncoderInputs::Tokens> EncoderInputs::encode(const EncoderText& given) const {
  if (given.problem) return *given.problem;
  const std::string where = given.name.empty() ? "" : given.name + ": ";
  if (given.text.empty() || (given.second && given.second->empty()))
    return bad_input(where + "the text is empty: nothing to " + (pairs_ ? "score" : "embed"));
  const std::string text = prompt_ + given.text;
  const std::string_view second = given.second ? std::string_view(*given.second) : std::string_view();
  auto encoded = tokenizer_.encode(text, pairs_ ? &second : nullptr, max_length_);
  if (!encoded) return Error{encoded.error().code, where + encoded.error().message};
  if (encoded->ids.empty()) return bad_input(where + "the text has no tokens");
  if (!tokenizer_has_types_) std::ranges::fill(encoded->types, 0);
  return Tokens{std::move(encoded->ids), std::move(encoded->types), encoded->cut};
}

run::Function::NamedTensors EncoderInputs::tensors(const std::vector<const Tokens*>& texts) const {
  std::vector<const std::vector<int32_t>*> ids, types;
  for (const Tokens* t : texts) ids.push_back(&t->ids), types.push_back(&t->types);
  run::Function::NamedTensors inputs = {{"input_ids", tensor_of(ids)}};
  if (has_token_types_) inputs.emplace_back("token_type_ids", tensor_of(types));
  return inputs;
}

Result<EncoderKind> encoder_kind(const ModelLocation& location) {
  const std::string path = location.folder + "/config.json";
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return EncoderKind::none;  // an ONNX model's folder
  INVAR_TRY(const std::string text, read_file(path));
  const json::Value config = json::read_or_null(text);
  if (!config.is_object() || !checkpoint::encoder_type(config)) return EncoderKind::none;
  INVAR_TRY(const auto architecture, checkpoint::find_encoder_architecture(config, path));
  return architecture.classifies ? EncoderKind::scores : EncoderKind::vectors;
}

Result<run::Function::NamedTensors> encoder_inputs(const ModelOptions& model, const EncoderOptions& options,
                                                   const EncoderText& text, Observer& observer) {
  INVAR_TRY(const ModelLocation location,
            obtain({model.model_name, model.revision, model.offline}, observer));
  INVAR_TRY(const EncoderInputs inputs, EncoderInputs::open(location, options, observer));
  INVAR_TRY(const EncoderInputs::Tokens tokens, inputs.encode(text));
  if (tokens.cut > 0)
    observer.note("cut", "the last " + std::to_string(tokens.cut) +
                             " tokens are beyond the model's length: the receipt is not about them");
  return inputs.tensors({&tokens});
}

}  // namespace invar::generate
