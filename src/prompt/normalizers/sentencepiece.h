// The normalizer of SentencePiece files (spec/tokens.md tokens.16).
#pragma once

#include <memory>

#include "prompt/models/sentencepiece.h"
#include "prompt/normalizers/normalizer.h"

namespace invar::prompt {

struct SentencePieceRules {
  Charsmap charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};
NormalizerPtr make_sentencepiece_normalizer(SentencePieceRules rules, std::shared_ptr<const Pieces> pieces);

}  // namespace invar::prompt
