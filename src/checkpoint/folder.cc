// Locates all tensors of a checkpoint from safetensors headers and the shard index.
#include "checkpoint/folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file/file.h"
#include "checkpoint/files/json.h"
#include "checkpoint/gguf/gguf_model.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

Status add_file(Checkpoint& checkpoint, const std::string& file) {
  INVAR_TRY(auto tensors, read_safetensors_header(checkpoint.folder + "/" + file));
  for (auto& [name, stored] : tensors) {
    auto [it, fresh] = checkpoint.tensors.emplace(name, CheckpointTensor{std::move(stored), file});
    if (!fresh)
      return bad_input(checkpoint.folder + ": tensor " + onnx::quote(name) + " is in both " +
                       onnx::quote(it->second.file) + " and " + onnx::quote(file));
  }
  checkpoint.files.push_back(file);
  return {};
}

bool exists(const std::string& path) {
  std::error_code error;  // an unreadable path counts as present, so that opening it reports why
  return fs::exists(path, error) || error;
}

bool is_plain_name(const std::string& file) {
  return !file.empty() && file != "." && file != ".." && file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

Status add_shards(Checkpoint& checkpoint) {
  const std::string path = checkpoint.folder + "/" + kIndex;
  INVAR_TRY(std::string text, read_file(path));
  INVAR_TRY(Value index, parse_json(text, path));
  auto map = index.find("weight_map");
  if (!map || !map->is_object() || map->empty()) return bad_input(path + ": no weight_map");
  std::set<std::string> shards;
  for (const auto& [name, file] : map->members) {
    if (!file.is_string() || !is_plain_name(file.text))
      return bad_input(path + ": the file of tensor " + onnx::quote(name) + " is not a plain file name");
    shards.insert(file.text);
  }
  for (const std::string& file : shards) {
    if (!exists(checkpoint.folder + "/" + file))
      return bad_input(checkpoint.folder + ": shard " + onnx::quote(file) + " of " + kIndex +
                       " is missing; fetch it again");
    INVAR_CHECK_OK(add_file(checkpoint, file));
  }
  for (const auto& [name, file] : map->members) {
    auto it = checkpoint.tensors.find(name);
    if (it == checkpoint.tensors.end())
      return bad_input(checkpoint.folder + ": tensor " + onnx::quote(name) + " is not in " +
                       onnx::quote(file.text) + ", where " + kIndex + " says it is");
    if (it->second.file != file.text)
      return bad_input(checkpoint.folder + ": tensor " + onnx::quote(name) + " is in " +
                       onnx::quote(it->second.file) + ", but " + kIndex + " says " + onnx::quote(file.text));
  }
  const auto is_listed = [&](const std::string& name) {  // parse_json() has put the names in order
    return std::ranges::binary_search(map->members, name, {}, &json::Member::first);
  };
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (!is_listed(name))
      return bad_input(checkpoint.folder + ": tensor " + onnx::quote(name) + " of " +
                       onnx::quote(tensor.file) + " is not in " + kIndex);
  return {};
}

// config.json of a GGUF file names it (gguf/gguf_config.cc).
Result<Checkpoint> open_gguf_checkpoint(const std::string& folder, const Value& origin) {
  const Value& files = origin.get("files");
  const bool named = files.is_array() && !files.empty() && files.items[0].is_string();
  const std::string file = named ? files.items[0].text : "";
  if (!is_plain_name(file)) return bad_input(folder + "/config.json: \"gguf\" names no file of this folder");
  INVAR_TRY(Gguf gguf, open_gguf(folder + "/" + file));
  INVAR_TRY(const Value config, gguf_config(gguf));
  if (config.get("gguf") != origin)
    return bad_input(folder + ": config.json is not that of " + onnx::quote(file) +
                     ", which was changed: run the GGUF file itself");
  return gguf_checkpoint(folder, std::move(gguf));
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& folder) {
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  // If both are present, the single file wins, as in transformers.
  if (exists(folder + "/" + kSingle)) {
    INVAR_CHECK_OK(add_file(checkpoint, kSingle));
  } else if (exists(folder + "/" + kIndex)) {
    INVAR_CHECK_OK(add_shards(checkpoint));
  } else {
    INVAR_TRY(const Value config, optional_json(folder + "/config.json"));
    if (config.get("gguf").is_object()) return open_gguf_checkpoint(folder, config.get("gguf"));
    const bool pickled =
        exists(folder + "/pytorch_model.bin") || exists(folder + "/pytorch_model.bin.index.json");
    return bad_input(
        folder + ": neither " + kSingle + " nor " + kIndex + " is there" +
        (pickled ? "; only pytorch_model.bin, which must be converted to safetensors first: load it with "
                   "transformers, and save_pretrained('FOLDER') writes them"
                 : ""));
  }
  return checkpoint;
}

}  // namespace invar::checkpoint
