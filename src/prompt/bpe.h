// Byte-level BPE: the bytes of one word -> token ids.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prompt/pair_map.h"

namespace invar::prompt {

// ByteLevel writes every byte as one character: printable Latin-1 as itself, the others from U+0100
// on.
uint32_t character_of_byte(uint8_t b);
int byte_of_character(uint32_t c);  // -1: not such a character
// The bytes that a token written in those characters stands for; false if it has any other
// character.
bool bytes_of_token(std::string_view token, std::string& bytes);

struct Merge {
  uint32_t rank;
  int32_t merged;
};

class Bpe {
 public:
  static constexpr int32_t kNone = -1;
  std::array<int32_t, 256> byte_id;  // kNone where the vocabulary lacks the byte
  PairMap<Merge> merges;             // (left id, right id) -> merged token; the lowest rank merges first
  int32_t unk = kNone;
  bool fuse_unk = false;
  bool whole_words = false;  // ignore_merges: a word that is a token is taken as it stands
  std::unordered_map<std::string, int32_t> word_id;  // by bytes; filled only for whole_words

  struct Scratch {
    struct Symbol {
      int32_t id, previous, next;
    };
    struct Candidate {
      uint32_t rank;
      int32_t at;
      int32_t left, right;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    std::vector<uint32_t> ranks;
    std::string key;
  };
  // Appends the word's tokens. Returns the first byte that no token stands for, or -1 when all is
  // encoded.
  int encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const;

 private:
  void merge_short(std::vector<int32_t>& out, size_t first, Scratch& scratch) const;
  void merge_long(std::vector<int32_t>& out, size_t first, Scratch& scratch) const;
};

}  // namespace invar::prompt
