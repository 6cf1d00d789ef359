// How a folder of sentence-transformers makes one vector of a text (spec/encoder.md encoder.11):
// modules.json, the modules' config.json, sentence_bert_config.json, and the prompts of
// config_sentence_transformers.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::checkpoint {

struct SentenceConfig {
  bool has_modules = false;  // without modules.json: mean pooling, as sentence-transformers has it
  // cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken: one behind the other
  std::vector<std::string> pooling = {"mean"};
  bool normalize = false;
  bool include_prompt = true;  // false: tokens of the prompt are not pooled
  int64_t max_length = 0;      // tokens, special ones included; 0: the files say none
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // the name of one; "": none
};

// Lengths of a vector whose first numbers are a vector, too (encoder.13).
struct ShorterVectors {
  bool any = false;            // every length
  std::vector<int64_t> sizes;  // else these
};

// Modules and settings that change a vector in another way are refused by name (not_covered).
Result<SentenceConfig> read_sentence_config(const std::string& folder);
// max_seq_length of sentence_bert_config.json; 0: the file says none or is not there.
Result<int64_t> read_max_length(const std::string& folder);

// An encoder as its caller has to know it to make inputs.
struct TextEncoder {
  SentenceConfig sentence;
  ShorterVectors shorter;
  int64_t labels = 0;            // of a classifier; 0: the model gives the vector of a text
  bool has_token_types = false;  // whether token_type_ids is an input
  int64_t positions = 0;         // tokens that its table of positions reaches; 0: it has none
  int64_t max_positions = 0;     // max_position_embeddings
};
// Reads a checkpoint folder. Errors: those of the export but for tensors.
Result<TextEncoder> read_text_encoder(const std::string& folder);

}  // namespace invar::checkpoint
