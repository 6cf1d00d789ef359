// Byte-pair encoding: a word -> token ids (spec/tokens.md tokens.6, tokens.13).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prompt/models/model.h"
#include "prompt/models/pair_map.h"

namespace invar::prompt {

// ByteLevel writes every byte as one character: printable Latin-1 as itself, the others from U+0100
// on.
uint32_t character_of_byte(uint8_t b);
int byte_of_character(uint32_t c);  // -1: not such a character
std::string characters_of_bytes(std::string_view bytes);
// The bytes that a token written in those characters stands for; false if it has any other
// character.
bool bytes_of_token(std::string_view token, std::string& bytes);

struct Merge {
  uint32_t rank;
  int32_t merged;
};

class Bpe : public Model {
 public:
  PairMap<Merge> merges;  // (left id, right id) -> merged token; the lowest rank merges first
  int32_t unk = kNone;
  bool fuse_unk = false;
  bool whole_words = false;  // ignore_merges: a word that is a token is taken as it stands
  std::unordered_map<std::string, int32_t> word_id;  // filled only for whole_words

  // Whether a word is raw bytes, each a token by itself. Else a word is characters.
  bool of_bytes = true;
  std::array<int32_t, 256> byte_id;  // kNone where the vocabulary lacks the byte

  // The place of a character in its word: bit 0 after the first one, bit 1 at the last; 0 where the
  // model has neither prefix nor suffix.
  enum Place : uint32_t { kFirst = 0, kLater = 1, kLast = 2 };
  PairMap<int32_t> characters;           // (code point, place) -> token
  std::string prefix, suffix;            // of later characters, of the last one
  bool byte_fallback = false;            // a character without a token becomes those of its bytes
  std::array<int32_t, 256> fallback_id;  // kNone where the vocabulary lacks the byte's token

  Bpe() { byte_id.fill(kNone), fallback_id.fill(kNone); }
  Status encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const override;

 private:
  int start_with_bytes(std::string_view word, std::vector<int32_t>& out) const;
  Status start_with_characters(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const;
  bool fall_back(uint32_t c, uint32_t place, std::vector<int32_t>& out, Scratch& scratch) const;
  void merge_short(std::vector<int32_t>& out, size_t first, Scratch& scratch) const;
  void merge_long(std::vector<int32_t>& out, size_t first, Scratch& scratch) const;
};

}  // namespace invar::prompt
