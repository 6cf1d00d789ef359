// A checkpoint folder as the journey needs it: digests, tokenizer, generation defaults. Weights are not touched here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "commands.h"
#include "defaults.h"
#include "prompt/prompt.h"
#include "sample/sample.h"

namespace invar::cli {

struct Model {
  std::string name;      // org/name, or the folder's own name
  std::string revision;  // the snapshot of a hub model, else ""
  std::string folder;
  Digest config, tokenizer_digest, chat_template;
  prompt::Tokenizer tokenizer;
  int64_t context = 0;  // max_position_embeddings
  std::vector<int32_t> stop_tokens;
};

// The folder itself, or the snapshot of org/name in the local Hugging Face cache: that of `revision` if the cache has it,
// else that of its branch main.
struct Place {
  std::string name, revision, folder;
};
Result<Place> resolve(const std::string& model_name, const std::string& revision = "");
bool is_hub_name(const std::string& model_name);  // org/name
Result<Model> open_model(const Place&);

// How tokens are chosen and how many: what the user gave, else the checkpoint's generation_config.json.
struct Decoding {
  sample::Params params;
  std::optional<int64_t> asked;  // --max-new-tokens: it must fit the context
  Defaults defaults;             // which is cut to what fits
};
Result<Decoding> decoding(const Model&, const SamplingOptions&);
// At most so many tokens after a prompt of `tokens`.
Result<int64_t> new_tokens(const Model&, const Decoding&, int64_t tokens);

}  // namespace invar::cli
