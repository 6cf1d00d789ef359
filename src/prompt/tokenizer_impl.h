// The tokenizer in memory, as read from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/sync/mutex.h"
#include "prompt/added_tokens.h"
#include "prompt/decoders/decoder.h"
#include "prompt/models/model.h"
#include "prompt/normalizers/normalizer.h"
#include "prompt/pretokenizers/pretokenizer.h"
#include "prompt/prompt.h"

namespace invar::prompt {

struct EncodeScratch;  // tokenizer.cc

struct Tokenizer::Impl {
  struct Token {
    std::string text;  // what the first decoder is given
    bool exists = false, special = false;
  };
  Impl();
  ~Impl();

  bool of_ids = false;        // texts are ids, and there is nothing else
  std::vector<Token> tokens;  // by id; an id may be unused
  std::vector<NormalizerPtr> normalizers;
  std::vector<PreTokenizerPtr> pre_tokenizers;
  std::unique_ptr<const Model> model;
  std::vector<AddedToken> added;      // in the order of the file
  AddedTokenMatcher raw, normalized;  // of added tokens: in the text as given, and after the normalizer
  // Post-processors in order; each is a sequence of token ids and, as kText, the tokens so far.
  static constexpr int32_t kText = -1;
  std::vector<std::vector<int32_t>> templates;
  // The same of pairs of texts: kText and kSecond are the texts, and each has a type.
  static constexpr int32_t kSecond = -2;
  struct PairPiece {
    int32_t id, type;
  };
  std::vector<std::vector<PairPiece>> pair_templates;  // an empty one: of a kind that is not known
  std::vector<DecoderPtr> decoders;

  // The text after all normalizers.
  Status normalize(Normalizer::Text& text, Regex::Scratch& scratch) const;

  // Working memory of encode(), kept between calls. One call at a time takes one of them.
  mutable Mutex scratch_mutex;
  mutable std::vector<std::unique_ptr<EncodeScratch>> scratch;
};

// Reads a tokenizer.json (files/tokenizer_json.cc). Errors begin with the file's name.
Result<std::unique_ptr<Tokenizer::Impl>> read_tokenizer(std::string_view text, std::string_view file);

// Reads a SentencePiece model (files/sentencepiece.cc).
Result<std::unique_ptr<Tokenizer::Impl>> read_sentencepiece(std::string_view bytes, std::string_view file,
                                                            const EndTokens& ends);
// Reads a list of ranks (files/tiktoken.cc).
Result<std::unique_ptr<Tokenizer::Impl>> read_tiktoken(std::string_view text, std::string_view file,
                                                       std::string_view encoding);

}  // namespace invar::prompt
