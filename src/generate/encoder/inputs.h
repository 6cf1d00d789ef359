// Text -> the inputs of an encoder's program, as sentence-transformers makes them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "generate/encoder/encoder.h"
#include "generate/model/model_folder.h"

namespace invar::generate {

class EncoderInputs {
 public:
  static Result<EncoderInputs> open(const ModelLocation&, const EncoderOptions&, Observer&);

  struct Tokens {
    std::vector<int32_t> ids, types;
    int64_t cut = 0;
  };
  Result<Tokens> encode(const EncoderText&) const;
  int64_t max_length() const { return max_length_; }
  // Shorter vectors that the model declares (encoder.13).
  bool offers(int64_t dimensions) const { return any_size_ || std::ranges::count(sizes_, dimensions) > 0; }
  bool normalizes() const { return normalizes_; }
  // The tensors of texts of one length: [texts, length].
  run::Function::NamedTensors tensors(const std::vector<const Tokens*>&) const;

 private:
  EncoderInputs(prompt::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
  prompt::Tokenizer tokenizer_;
  std::string prompt_;
  int64_t max_length_ = 0;
  bool has_token_types_ = false, pairs_ = false, tokenizer_has_types_ = true;
  bool normalizes_ = false, any_size_ = false;
  std::vector<int64_t> sizes_;
};

}  // namespace invar::generate
