// Normalizers: rewrite the text between added tokens before it is pre-tokenized (spec/tokens.md
// tokens.12).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "prompt/regex/regex.h"
#include "prompt/regex/replace.h"

namespace invar::prompt {

class Normalizer {
 public:
  // A normalized text, and whether its first character comes from the very start of the text given.
  struct Text {
    std::string text;
    bool from_start = true;
  };
  virtual ~Normalizer() = default;
  // Rewrites the text. An error: a pattern takes too many steps.
  virtual Status apply(Text& text, Regex::Scratch& scratch) const = 0;
};

// Makers of each kind; what each does: tokens.12.
using NormalizerPtr = std::unique_ptr<const Normalizer>;
enum class Form { nfc, nfd, nfkc, nfkd };
NormalizerPtr make_unicode_normalizer(Form form);
NormalizerPtr make_lowercase();
NormalizerPtr make_strip(bool left, bool right);
NormalizerPtr make_strip_accents();
NormalizerPtr make_nmt();
NormalizerPtr make_prepend(std::string prefix);
NormalizerPtr make_byte_level_normalizer();
struct BertOptions {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};
NormalizerPtr make_bert_normalizer(const BertOptions& options);

NormalizerPtr make_replace(Replacement replacement);

// The charsmap of a SentencePiece model: a double-array trie of prefixes, and the texts that
// replace them (precompiled.cc). An empty map changes nothing.
class Charsmap {
 public:
  static Result<Charsmap> parse(std::string_view bytes);
  bool empty() const { return trie_.empty(); }
  struct Match {
    size_t length;  // 0: none
    std::string_view replacement;
  };
  Match shortest(std::string_view text) const;
  Match longest(std::string_view text) const;

 private:
  Match find(std::string_view text, bool longest) const;
  std::vector<uint32_t> trie_;
  std::string texts_;  // each ends with a NUL
};
NormalizerPtr make_precompiled(Charsmap map);

}  // namespace invar::prompt
