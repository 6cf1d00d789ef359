// Unigram language models: a word -> the token ids of the most likely cut (Kudo, "Subword
// Regularization", 2018; spec/tokens.md tokens.14).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "prompt/models/model.h"
#include "prompt/models/trie.h"

namespace invar::prompt {

class Unigram : public Model {
 public:
  // Log-probabilities by id. `unk` may be kNone.
  Unigram(const std::vector<std::pair<std::string, double>>& pieces, int32_t unk, bool byte_fallback);
  Status encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const override;

 private:
  Status find_best(std::string_view word, Scratch& scratch) const;
  Status append_unknown(std::string_view text, std::vector<int32_t>& out) const;

  Trie trie_;
  std::vector<double> scores_;
  double unk_score_ = 0;
  int32_t unk_;
  bool byte_fallback_;
  std::array<int32_t, 256> byte_id_;  // kNone where the vocabulary lacks the byte's token
};

}  // namespace invar::prompt
