// Pre-tokenizers that rewrite spaces or bytes: MetaspaceSplitter, and the parts of ByteLevel.
#include "base/text/utf8.h"
#include "prompt/models/bpe.h"
#include "prompt/pretokenizers/pretokenizer.h"

namespace invar::prompt {
namespace {

std::string utf8_of(uint32_t c) {
  std::string s;
  append_utf8(s, c);
  return s;
}

class MetaspaceSplitter : public PreTokenizer {
 public:
  MetaspaceSplitter(uint32_t replacement, PrependScheme scheme, bool split)
      : replacement_(utf8_of(replacement)), scheme_(scheme), split_(split) {}

  Status split(Word piece, Scratch& scratch, std::vector<Word>& out) const override {
    const std::string_view text = rewritten(piece, scratch);
    if (!split_) {
      out.push_back({text, piece.from_start});
      return {};
    }
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(replacement_, begin + 1), text.size());
      out.push_back({text.substr(begin, end - begin), piece.from_start && begin == 0});
      begin = end;
    }
    return {};
  }

 private:
  std::string_view rewritten(Word piece, Scratch& scratch) const {
    const bool starts = piece.text.starts_with(replacement_) || piece.text.starts_with(' ');
    const bool prepend = !starts && (scheme_ == PrependScheme::always ||
                                     (scheme_ == PrependScheme::first && piece.from_start));
    if (!prepend && piece.text.find(' ') == piece.text.npos) return piece.text;
    std::string& text = scratch.texts.emplace_back();
    text.reserve(piece.text.size() * 5 / 4 + 8);
    if (prepend) text += replacement_;
    for (const char c : piece.text) {
      if (c == ' ') {
        text += replacement_;
      } else {
        text += c;
      }
    }
    return text;
  }

  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

class PrefixSpace : public PreTokenizer {
 public:
  Status split(Word piece, Scratch& scratch, std::vector<Word>& out) const override {
    if (!piece.text.starts_with(' ')) piece.text = scratch.texts.emplace_back(" ").append(piece.text);
    out.push_back(piece);
    return {};
  }
};

class ByteCharacters : public PreTokenizer {
 public:
  Status split(Word piece, Scratch& scratch, std::vector<Word>& out) const override {
    piece.text = scratch.texts.emplace_back(characters_of_bytes(piece.text));
    out.push_back(piece);
    return {};
  }
};

class CutBefore : public PreTokenizer {
 public:
  explicit CutBefore(uint32_t character) : character_(utf8_of(character)) {}

  Status split(Word piece, Scratch&, std::vector<Word>& out) const override {
    size_t begin = 0, search = 0;
    while (search < piece.text.size()) {
      while (piece.text.substr(search).starts_with(character_)) search += character_.size();
      const size_t end = std::min(piece.text.find(character_, search), piece.text.size());
      out.push_back({piece.text.substr(begin, end - begin), piece.from_start && begin == 0});
      begin = search = end;
    }
    return {};
  }

 private:
  std::string character_;
};

}  // namespace

PreTokenizerPtr make_metaspace(uint32_t replacement, PrependScheme scheme, bool split) {
  return std::make_unique<MetaspaceSplitter>(replacement, scheme, split);
}

PreTokenizerPtr make_prefix_space() {
  return std::make_unique<PrefixSpace>();
}

PreTokenizerPtr make_byte_characters() {
  return std::make_unique<ByteCharacters>();
}

PreTokenizerPtr make_cut_before(uint32_t character) {
  return std::make_unique<CutBefore>(character);
}

}  // namespace invar::prompt
