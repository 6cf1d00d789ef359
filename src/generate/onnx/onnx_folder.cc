#include "generate/onnx/onnx_folder.h"

#include "base/file/file.h"
#include "base/file/listing.h"

namespace invar::generate {
namespace {

using json::Value;

constexpr FileKind kGenaiConfigFile{"a file of settings", uint64_t{16} << 20};
constexpr char kGenai[] = "genai_config.json";
// torch.onnx and Optimum, from the plainest name on.
constexpr const char* kNames[] = {"model.onnx",
                                  "onnx/model.onnx",
                                  "decoder_model.onnx",
                                  "onnx/decoder_model.onnx",
                                  "decoder_model_merged.onnx",
                                  "onnx/decoder_model_merged.onnx"};

bool has_checkpoint(const std::string& folder) {
  if (const auto names = names_in(folder))
    for (const std::string& name : *names)
      if (name.ends_with(".safetensors")) return true;
  return false;
}

// The member at this path of objects; null where there is none.
Value member(const Value& j, std::initializer_list<const char*> path) {
  const Value* at = &j;
  for (const char* key : path) {
    at = at->find(key);
    if (!at) return {};
  }
  return *at;
}

}  // namespace

Result<std::string> onnx_model_in(const std::string& folder) {
  if (has_checkpoint(folder)) return std::string();
  if (auto text = read_file(folder + "/" + kGenai, kGenaiConfigFile)) {
    const Value config = json::read_or_null(*text);
    const Value name = member(config, {"model", "decoder", "filename"});
    const std::string path = name.is_string() ? name.text : "";
    if (path.empty() || path.find('/') != path.npos || !is_file(folder + "/" + path))
      return bad_input(folder + "/" + kGenai + ": model.decoder.filename names no file of the folder");
    return folder + "/" + path;
  }
  for (const char* name : kNames)
    if (is_file(folder + "/" + name)) return folder + "/" + name;
  return std::string();
}

std::string onnx_config_file(const std::string& folder) {
  return exists(folder + "/config.json") ? "config.json" : kGenai;
}

Value context_of(const Value& config) {
  for (const char* key : {"max_position_embeddings", "n_positions"})
    if (Value size = member(config, {key}); !size.is_null()) return size;
  return member(config, {"model", "context_length"});
}

Value stop_tokens_of(const Value& config) {
  Value ids = member(config, {"eos_token_id"});
  return ids.is_null() ? member(config, {"model", "eos_token_id"}) : ids;
}

}  // namespace invar::generate
