// The patterns by which a byte-level tokenizer of a GGUF file splits text, by the name that the
// file gives (tokenizer.ggml.pre). The patterns are those of the models' own tokenizer.json.
#pragma once

#include <string_view>

namespace invar::checkpoint {

struct GgufPreTokenizer {
  const char* patterns[6] = {};  // one after the other, each isolates what it finds; null: no more
  bool whole_words = false;      // a word that is a token is that token, whatever the merges say
  bool begins = false;           // with begin-of-text, where the file does not say
};
// Null: the name is not covered.
const GgufPreTokenizer* find_gguf_pretokenizer(std::string_view name);

}  // namespace invar::checkpoint
