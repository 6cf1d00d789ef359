#include "checkpoint/config_reading/seq2seq_config.h"

#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/families/seq2seq/seq2seq_family.h"

namespace invar::checkpoint {

Result<Seq2Seq> read_seq2seq_config(const json::Value& object, const std::string& folder) {
  const std::string path = folder + "/config.json";
  INVAR_TRY(const Architecture* architecture, find_architecture(object, path));
  ConfigReader reader(object, path);
  Seq2Seq m;
  m.family = architecture->model_type, m.architecture = architecture->name;
  const auto is_family = [&](const Seq2SeqFamily& f) { return m.family == f.model_type; };
  std::ranges::find_if(seq2seq_families(), is_family)->describe(reader, m);
  if (!reader.flag("is_encoder_decoder", true)) reader.refuse("'is_encoder_decoder' = false is not covered");
  reader.require_neutral("is_decoder");
  INVAR_CHECK_OK(check_settings(object, reader));  // what is not covered is said first
  INVAR_CHECK_OK(reader.status());
  m.metadata["invar.model_type"] = m.family;
  onnx::add_recipe(recipe_of(m), m.metadata);
  return m;
}

}  // namespace invar::checkpoint
