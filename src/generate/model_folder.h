// A checkpoint folder as generation needs it: digests, tokenizer, stop tokens. Weights are not
// touched here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "prompt/chat.h"
#include "prompt/prompt.h"
#include "receipt/seal.h"

namespace invar::generate {

// Where a model lies: the folder itself, or the snapshot of org/name in the local Hugging Face
// cache.
struct ModelLocation {
  std::string name;      // org/name, or the folder's own name
  std::string revision;  // the snapshot of a hub model, else ""
  std::string folder;
};
// Of org/name the snapshot of `revision` if the cache has it, else that of its branch main.
Result<ModelLocation> resolve(const std::string& model_name, const std::string& revision = "");
bool is_hub_name(const std::string& model_name);  // org/name

struct ModelFolder {
  receipt::ModelIdentity identity;
  std::string folder;
  prompt::Tokenizer tokenizer;
  int64_t context = 0;               // max_position_embeddings
  std::vector<int32_t> stop_tokens;  // ascending, each once
  prompt::ChatTemplates chat_templates;
};
// Of a checkpoint folder the chat templates alone.
Result<prompt::ChatTemplates> open_chat_templates(const ModelLocation&);
Result<ModelFolder> open_model(const ModelLocation&);
// The ids in ascending order, each once.
std::vector<int32_t> ascending(std::vector<int32_t> ids);

}  // namespace invar::generate
