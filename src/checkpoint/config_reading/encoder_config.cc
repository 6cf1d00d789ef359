#include "checkpoint/config_reading/encoder_config.h"

#include <algorithm>

#include "base/file/file.h"
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/families/encoder/encoder_family.h"
#include "checkpoint/files/json.h"

namespace invar::checkpoint {
namespace {

using json::Value;
using onnx::quote;

// The number of labels: those of id2label, else num_labels, else transformers' two.
int64_t labels_of(ConfigReader& r) {
  const Value* names = r.find("id2label");
  if (names && !names->is_object()) r.reject("'id2label' is not an object");
  if (names && names->is_object() && !names->empty()) return static_cast<int64_t>(names->size());
  return r.size("num_labels", 2);
}

// The activation of the scores of a reranker: what a file of sentence-transformers names, else
// sigmoid where there is one label. True: sigmoid.
bool read_activation_fn(ConfigReader& r, const Value& sentence, int64_t labels) {
  std::string name;
  for (const Value* given :
       {r.find("sbert_ce_default_activation_function"), r.find("sentence_transformers"), &sentence}) {
    const Value value = !given ? Value() : given->is_object() ? given->get("activation_fn") : *given;
    if (value.is_string()) name = value.text;
  }
  if (name.empty()) return labels == 1;
  const std::string last = name.substr(name.rfind('.') + 1);
  if (last != "Sigmoid" && last != "Identity")
    r.refuse("the activation of scores " + quote(name) + " is not covered; Sigmoid and Identity are");
  return last == "Sigmoid";
}

}  // namespace

Result<Encoder> read_encoder_config(const Value& object, const std::string& folder) {
  const std::string path = folder + "/config.json";
  INVAR_TRY(const EncoderArchitecture architecture, find_encoder_architecture(object, path));
  ConfigReader reader(object, path);
  Encoder e;
  e.family = architecture.model_type;
  e.architecture =
      architecture.stem + std::string(architecture.classifies ? "ForSequenceClassification" : "Model");
  std::ranges::find(encoder_families(), e.family, [](const EncoderFamily& f) {
    return std::string(f.model_type);
  })->describe(reader, e);
  if (architecture.classifies) {
    INVAR_TRY(const Value sentence, optional_json(folder + "/config_sentence_transformers.json"));
    e.classifier.labels = labels_of(reader);
    e.classifier.sigmoid = read_activation_fn(reader, sentence, e.classifier.labels);
  }
  INVAR_CHECK_OK(check_settings(object, reader));  // what is not covered is said first
  INVAR_CHECK_OK(reader.status());
  if (!architecture.classifies) {
    INVAR_TRY(e.sentence, read_sentence_config(folder));
  }
  e.metadata["invar.model_type"] = e.family;
  return e;
}

static Result<ShorterVectors> read_shorter(const Value& object, const std::string& path) {
  ConfigReader r(object, path);
  ShorterVectors shorter;
  shorter.any = r.flag("is_matryoshka");
  const Value* const sizes = r.find("matryoshka_dimensions");
  const Value list = sizes ? *sizes : Value();
  bool good = list.is_null() || list.is_array();
  for (const Value& size : list.items) {
    shorter.sizes.push_back(size.to_int64());
    good &= size.is_number() && size.text == std::to_string(shorter.sizes.back());
  }
  if (!good) r.reject("'matryoshka_dimensions' is not a list of sizes");
  if (!shorter.sizes.empty()) shorter.any = false;
  INVAR_CHECK_OK(r.status());
  return shorter;
}

Result<TextEncoder> read_text_encoder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(const Value object, parse_json(text, path));
  INVAR_TRY(const Encoder e, read_encoder_config(object, folder));
  TextEncoder out;
  out.sentence = e.sentence;
  INVAR_TRY(out.shorter, read_shorter(object, path));
  if (e.classifier.labels > 0) {  // its texts are as long as those of a sentence encoder
    INVAR_TRY(out.sentence.max_length, read_max_length(folder));
  }
  out.labels = e.classifier.labels;
  out.has_token_types = e.classifier.labels > 0 && e.token_types > 1;
  out.positions = e.positions == Positions::none             ? 0
                  : e.positions == Positions::behind_padding ? e.position_rows - e.padding - 1
                                                             : e.position_rows;
  out.max_positions = ConfigReader(object, path).size("max_position_embeddings", 512);
  return out;
}

}  // namespace invar::checkpoint
