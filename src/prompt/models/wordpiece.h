// WordPiece: the longest token that begins the word, then the longest that goes on (spec/tokens.md
// tokens.15); and WordLevel: a word is one token.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "prompt/models/model.h"
#include "prompt/models/trie.h"

namespace invar::prompt {

class WordPiece : public Model {
 public:
  // Words of more than `longest` characters, and words that tokens cannot make, are `unk`.
  WordPiece(const std::unordered_map<std::string, int32_t>& vocabulary, int32_t unk, std::string_view prefix,
            size_t longest);
  Status encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const override;

 private:
  Trie trie_;
  uint32_t go_on_ = Trie::kRoot;  // the node of the prefix of later tokens
  bool goes_on_ = true;           // some token has the prefix
  int32_t unk_;
  size_t longest_;
};

class WordLevel : public Model {
 public:
  WordLevel(std::unordered_map<std::string, int32_t> vocabulary, int32_t unk)
      : vocabulary_(std::move(vocabulary)), unk_(unk) {}
  Status encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const override;

 private:
  std::unordered_map<std::string, int32_t> vocabulary_;
  int32_t unk_;
};

}  // namespace invar::prompt
