// The trees of a vocabulary, see grammar.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace invar::grammar {

// A longer token is walked through as one that is not plain.
inline constexpr int32_t kMostPlain = 64;

// The tokens in the order of their bytes, as a tree in that order: a node for each byte, before the
// nodes behind it.
struct TokenTree {
  struct Node {
    uint8_t byte;
    uint32_t depth;         // bytes up to and with this one
    uint32_t behind;        // the first node that is not below this one
    uint32_t first, count;  // of `ids`: the tokens that end here
  };
  std::vector<Node> nodes;
  std::vector<int32_t> ids;
  uint32_t deepest = 0;
};

struct Vocabulary::Impl {
  std::vector<std::optional<std::string>> tokens;
  TokenTree all, rest;  // rest: without the plain ones
  // Tokens of whole characters that JSON writes as themselves, by their number of characters, of at
  // most kMostPlain.
  struct Plain {
    int32_t characters, id;
  };
  std::vector<Plain> plain;
  std::vector<uint64_t> all_plain;
};

}  // namespace invar::grammar
