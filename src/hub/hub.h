// Models of the Hugging Face hub: found in the local cache, or downloaded into it. The cache has
// the layout of the Python package huggingface_hub, so both programs share one: models--ORG--NAME
// with blobs (named by SHA-256, or by git's SHA-1), snapshots (links to them) and refs (branches).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::hub {

struct ModelName {
  std::string repository;  // ORG/NAME
  std::string revision;    // a branch, a tag or a commit; "" = the branch main
  std::string file = {};   // the GGUF file that is the model; "": the checkpoint, or the only such file
};
// Absent: the text is not ORG/NAME, with @REVISION, :FILE.gguf or both behind it in this order.
std::optional<ModelName> parse_name(std::string_view text);
// The same text.
std::string text_of(const ModelName&);
// NAME-00001-of-00003.gguf -> the names of all parts; else the one name.
std::vector<std::string> gguf_parts(const std::string& file);

// The files that are wanted: of a model, whose tokenizer comes with the configuration, or those of
// an adapter.
enum class Content { all, without_weights, adapter };
inline constexpr const char* kFilesOfAdapter[] = {"adapter_config.json", "adapter_model.safetensors"};

struct Snapshot {
  std::string commit;  // the name of its folder: 40 hexadecimal digits, if the hub made it
  std::string folder;
  bool complete = false;  // all that was wanted is here
};
// Looks into the cache, without network.
std::optional<Snapshot> find(const ModelName&, Content);

// Calls come on the caller's thread.
struct Watcher {
  std::function<void(size_t files, uint64_t bytes)> begin;   // once, when it is known what is needed
  std::function<bool(uint64_t done, uint64_t total)> bytes;  // false ends the download
};

// Asks the hub for the revision and downloads what the cache lacks of it. Every byte is checked
// against the hub's SHA-256 or git SHA-1 before it is seen under its name. What was received stays
// in the cache when the download is cut, and the next one goes on from there. bad_input: no such
// model, no permission, no network, a server that does not keep to the protocol, a cache that
// cannot be written. not_covered: no weights in safetensors.
Result<Snapshot> download(const ModelName&, Content, const Watcher&);

// ORG/NAME of a folder of the cache that is a snapshot; "": it is none.
std::string repository_of(const std::string& snapshot);

struct CachedModel {
  std::string repository, commit;
  uint64_t bytes = 0;
};
std::vector<CachedModel> cached_models();  // by name

}  // namespace invar::hub
