// The tokenizer in memory, as read from a tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prompt/added_tokens.h"
#include "prompt/bpe.h"
#include "prompt/pretokenize.h"
#include "prompt/prompt.h"

namespace invar::prompt {

struct Tokenizer::Impl {
  struct Token {
    std::string bytes;  // what it decodes to
    bool exists = false, special = false;
  };
  std::vector<Token> tokens;  // by id; an id may be unused
  Bpe bpe;
  bool nfc = false;
  PreTokenizers pre;
  std::vector<AddedToken> added;      // in the order of the file
  AddedTokenMatcher raw, normalized;  // of added tokens: in the text as given, and after the normalizer
  // Post-processors in order; each is a sequence of token ids and, as kText, the tokens so far.
  static constexpr int32_t kText = -1;
  std::vector<std::vector<int32_t>> templates;
};

// Reads a tokenizer.json (tokenizer_json.cc). Errors begin with the file's name.
Result<std::unique_ptr<Tokenizer::Impl>> read_tokenizer(std::string_view json, std::string_view file);

}  // namespace invar::prompt
