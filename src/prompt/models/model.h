// Models: one word -> token ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::prompt {

class Model {
 public:
  static constexpr int32_t kNone = -1;  // no token

  // Working memory, kept between words.
  struct Scratch {
    struct Symbol {
      int32_t id, previous, next;
    };
    struct Candidate {
      uint32_t rank;
      int32_t at, merged;
    };
    struct Best {  // of the ways to the end of a character
      double score;
      int32_t from, id;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    std::vector<uint32_t> ranks;
    std::vector<Best> best;
    std::vector<int32_t> ids;
    std::string key;
  };
  virtual ~Model() = default;
  // Appends the word's tokens. The word is valid UTF-8 and not empty. An error: a part of it has no
  // token, and there is no unknown token.
  virtual Status encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const = 0;
};

// The name of the token that stands for a byte where a model falls back to bytes: <0x0A>.
std::string byte_token(uint8_t byte);

}  // namespace invar::prompt
