// Added tokens: strings that are matched in the text before pre-tokenization (spec/tokens.md
// tokens.3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prompt/models/pair_map.h"

namespace invar::prompt {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
};

// Finds the leftmost match of a set of tokens, of several the longest.
class AddedTokenMatcher {
 public:
  void add(const AddedToken& token, std::string_view content);
  bool empty() const { return tokens_.empty(); }

  struct Piece {
    std::string_view text;
    int32_t id;  // -1: text between tokens
  };
  // Appends the pieces of the text in order, empty ones left out.
  void split(std::string_view text, std::vector<Piece>& out) const;

 private:
  static constexpr uint32_t kNoToken = UINT32_MAX;
  struct Flags {
    int32_t id;
    bool single_word, lstrip, rstrip;
  };
  PairMap<uint32_t> next_;                       // trie: (node, byte) -> node; node 0 is the root
  std::vector<uint32_t> token_of_ = {kNoToken};  // of each node
  std::vector<Flags> tokens_;
  bool begins_[256] = {};
};

}  // namespace invar::prompt
