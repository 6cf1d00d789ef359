// text <-> tokens, by the tokenizer file of a checkpoint (spec/tokens.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::prompt {

// The version of the Unicode tables that ship with Invar; written into receipts.
std::string_view unicode_version();

// Tokens that a SentencePiece file names but does not ask for (spec/tokens.md tokens.16).
struct EndTokens {
  bool begin = true;  // begin-of-text in front, if the file has one
  bool end = false;   // end-of-text behind
};

class Tokenizer {
 public:
  // Reads the content of a tokenizer.json. Unsupported parts (other models, normalizers, regular
  // expressions outside the supported grammar) are refused by name (not_covered).
  static Result<Tokenizer> parse(std::string_view json, std::string_view file_name_for_errors);
  // Reads the content of a SentencePiece tokenizer.model. Errors: bad_input where the file is
  // damaged, not_covered for models other than BPE and Unigram.
  static Result<Tokenizer> parse_sentencepiece(std::string_view bytes, std::string_view file_name_for_errors,
                                               const EndTokens& ends = {});
  // Reads a list of ranks (*.tiktoken). The name of an encoding gives the pattern and the special
  // tokens that the list lacks: cl100k_base, o200k_base, qwen, ...; other names are refused
  // (not_covered).
  static Result<Tokenizer> parse_tiktoken(std::string_view text, std::string_view file_name_for_errors,
                                          std::string_view encoding);
  // The tokenizer of a model that has none: texts are token ids in decimal digits, separated by
  // spaces (spec/tokens.md tokens.19).
  static Tokenizer of_ids();
  // Whether a tokenizer_config.json says nothing of texts and tokens but what this tokenizer does
  // (spec/tokens.md tokens.11). Errors name the key.
  Status check_config(std::string_view json, std::string_view file_name_for_errors) const;
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  int32_t vocab_size() const;  // one more than the highest id, added tokens included
  // Text must be valid UTF-8 (an error names the byte offset). Special tokens in the text are
  // recognised as Hugging Face does; with add_special_tokens the post-processor's (e.g.
  // begin-of-text) are added.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens = true) const;
  // The same of a text, or of a pair of texts, in at most max_length tokens, special ones included
  // (0: no bound). What is beyond is cut from the end, of a pair from the longer text (encoder.11).
  // bad_input: the special tokens alone are more; not_covered: a post-processor of pairs that is
  // not known.
  struct Encoding {
    std::vector<int32_t> ids, types;  // types: the number of the text, as the post-processor says it
    int64_t cut = 0;                  // tokens that were cut off
  };
  Result<Encoding> encode(std::string_view text, const std::string_view* second, int64_t max_length) const;
  // Bytes that are not valid UTF-8 become U+FFFD as in Hugging Face tokenizers.
  std::string decode(std::span<const int32_t> tokens, bool skip_special_tokens = true) const;
  bool is_special(int32_t token) const;
  // The bytes that every token adds to a text that has begun, by id: as spec/tokens.md tokens.17
  // gives them, but for what is special of the first token. None of special tokens and unused ids.
  // not_covered: a token's bytes depend on those around it.
  Result<std::vector<std::optional<std::string>>> token_bytes() const;

  struct Impl;  // prompt/tokenizer_impl.h

 private:
  friend class Stream;
  explicit Tokenizer(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

class DecoderStream;  // prompt/decoders/decoder.h

// Streaming decoding: the pieces joined, plus finish(), equal decode(all tokens). Holds back what a
// later token can still change (spec/tokens.md tokens.9).
class Stream {
 public:
  explicit Stream(const Tokenizer& t, bool skip_special_tokens = true);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();
  std::string push(int32_t token);
  void push(int32_t token, std::string& text);  // appends to the text
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool began_ = false;  // of ids: the first has no space in front
  std::unique_ptr<DecoderStream> decoders_;
};

}  // namespace invar::prompt
