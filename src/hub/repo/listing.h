// The files of a model's revision, as the hub lists them (GET
// /api/models/ORG/NAME/revision/REVISION?blobs=true), and which of them Invar opens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/hub.h"

namespace invar::hub {

struct RemoteFile {
  std::string path;  // relative, with / between its parts, of plain names
  std::optional<uint64_t> size;
  std::string digest;  // SHA-256 (64 digits) or git's SHA-1 (40); "": not listed
};

struct Listing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<RemoteFile> files;
};
// `where` begins the messages. bad_input: not of this form, or a path that leaves the folder.
Result<Listing> parse_listing(const std::string& text, const std::string& where);

// 64 or 40 lower-case hexadecimal digits.
bool is_digest(const std::string& text);

// Settings, tokenizer and templates, and the index of the weights' shards.
std::vector<RemoteFile> small_files(const Listing&);
// The weights that the checkpoint reader opens: model.safetensors, or else the shards that `index`
// (the content of model.safetensors.index.json) names. not_covered: the model has other weights
// alone.
Result<std::vector<RemoteFile>> weight_files(const Listing&, const std::string& index, const ModelName&);
// Every part of the path is a name that stays in its folder.
bool is_plain_path(const std::string& path);
// The model is in GGUF files alone, as far as Invar reads it.
bool is_gguf(const Listing&);
// The GGUF file that the name says, or the only one, with its other parts. bad_input: there is none
// of this name, or there are several; the message lists them by size.
Result<std::vector<RemoteFile>> gguf_files(const Listing&, const ModelName&);
// The model needs `index` of weight_files.
bool is_sharded(const Listing&);
inline constexpr const char* kShardIndex = "model.safetensors.index.json";
inline constexpr const char* kSingleFile = "model.safetensors";

// The shards that an index names, each once.
Result<std::vector<std::string>> shards_of(const std::string& index, const std::string& where);

}  // namespace invar::hub
