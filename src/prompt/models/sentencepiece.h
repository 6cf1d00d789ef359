// The models of SentencePiece files (spec/tokens.md tokens.16).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "prompt/models/model.h"
#include "prompt/models/trie.h"

namespace invar::prompt {

struct Piece {
  enum Type : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string text;
  float score = 0;
  Type type = normal;
};

// The pieces of a file, by id, and the sets of them that models search.
struct Pieces {
  explicit Pieces(std::vector<Piece> list);
  std::vector<Piece> list;
  Trie words;         // normal, user-defined and unused pieces
  Trie user_defined;  // never split
  int32_t unk = Model::kNone;
  std::array<int32_t, 256> byte_id;  // kNone where there is no such piece
  bool byte_fallback = false;
  // The length of the longest user-defined piece that begins the text, or 0.
  size_t user_defined_at(std::string_view text) const;
};

std::unique_ptr<const Model> make_sentencepiece_bpe(std::shared_ptr<const Pieces> pieces);
std::unique_ptr<const Model> make_sentencepiece_unigram(std::shared_ptr<const Pieces> pieces);

}  // namespace invar::prompt
