// A checkpoint folder as generation needs it: digests, tokenizer, stop tokens. Weights are not
// touched here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/observer.h"
#include "generate/speech/speech_model.h"
#include "grammar/grammar.h"
#include "hub/hub.h"
#include "prompt/chat.h"
#include "prompt/prompt.h"
#include "receipt/seal.h"

namespace invar::generate {

// The place of a model: the folder itself, or the snapshot of org/name in the local Hugging Face
// cache.
struct ModelLocation {
  std::string name;      // org/name, or the folder's own name
  std::string revision;  // the snapshot of a hub model, else ""
  std::string folder;
  std::string onnx_model = {};            // the file that was named; "": none, the folder has what it has
  std::string gguf = {};                  // the GGUF file whose texts the folder holds
  std::shared_ptr<const void> kept = {};  // the folder, where it goes with the process
  // What a later run finds the same model by.
  const std::string& path() const { return !gguf.empty() ? gguf : onnx_model.empty() ? folder : onnx_model; }
};
// The path of the ONNX model that is run; "" where the folder is a checkpoint.
Result<std::string> onnx_model_of(const ModelLocation&);
// A folder, an ONNX file in one, or org/name or org/name@revision in the local cache; without
// network. `claimed`: the revision of a receipt, which goes before the branch main if the cache has
// it.
Result<ModelLocation> resolve(const std::string& model_name, const std::string& claimed = "");
bool is_hub_name(const std::string& model_name);  // org/name

// How a model that is not here is had.
struct ModelSource {
  std::string name;           // folder, org/name or org/name@revision
  std::string revision = {};  // "" = that in the name
  bool offline = false;       // nothing is downloaded; neither is it where HF_HUB_OFFLINE says so
  hub::Content content = hub::Content::all;
};
// resolve(), and what the cache lacks is downloaded from the hub.
Result<ModelLocation> obtain(const ModelSource&, Observer&, const std::string& claimed = "");
// The folder of an adapter: it as it is, or that of an adapter of the hub.
Result<std::string> obtain_adapter(const std::string& adapter, bool offline, Observer&);
// Asks the hub, whatever the cache has: a branch may have moved on.
Result<ModelLocation> download(const ModelSource&, Observer&);

struct ModelFolder {
  receipt::ModelIdentity identity;
  std::string folder;
  prompt::Tokenizer tokenizer;
  int64_t context = 0;               // max_position_embeddings
  std::vector<int32_t> stop_tokens;  // ascending, each once
  prompt::ChatTemplates chat_templates;
  // Below `context` with LongRoPE alone: prompts of more tokens have another program (decoder.29).
  int64_t original_context = context;
  bool is_long(int64_t prompt_tokens) const {
    return original_context < context && prompt_tokens > original_context;
  }
  // Positions that a sequence with this prompt may have.
  int64_t context_of(int64_t prompt_tokens) const {
    return is_long(prompt_tokens) ? context : original_context;
  }
  std::vector<std::string> missing = {};  // what the folder of an ONNX model lacks, as texts
  // Of a model with an encoder, which takes the prompt: what its decoder takes before the answer;
  // empty: it has no encoder.
  std::vector<int32_t> decoder_tokens = {};
  int64_t source_context = 0;  // the most tokens of such a prompt
  // Of a model whose encoder hears: then its requests have decoder_tokens of their own.
  std::optional<SpeechModel> speech = {};
  // Of structured outputs, over the tokenizer's vocabulary.
  std::shared_ptr<grammar::ConstraintCache> constraints = std::make_shared<grammar::ConstraintCache>();
};
// Reads the chat templates of a checkpoint folder alone.
Result<prompt::ChatTemplates> open_chat_templates(const ModelLocation&);
Result<ModelFolder> open_model(const ModelLocation&);
// Reads the tokenizer of any folder alone.
Result<prompt::Tokenizer> read_tokenizer(const ModelLocation&);
// The same for an encoder. max_length: model_max_length of
// tokenizer_config.json, 0 where it says none. not_covered: texts that are too long are cut at
// their begin.
struct TextTokenizer {
  prompt::Tokenizer tokenizer;
  int64_t max_length = 0;
};
Result<TextTokenizer> open_tokenizer(const ModelLocation&);
// The ids in ascending order, each once.
std::vector<int32_t> ascending(std::vector<int32_t> ids);

}  // namespace invar::generate
