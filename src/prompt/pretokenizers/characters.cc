// Pre-tokenizers that look at each character by itself.
#include "base/text/utf8.h"
#include "prompt/pretokenizers/stretches.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

// Cuts at the characters for which is(character) holds.
template <class Is>
class AtCharacters : public PreTokenizer {
 public:
  AtCharacters(Is is, Behavior behavior) : is_(is), behavior_(behavior) {}

  Status split(Word piece, Scratch&, std::vector<Word>& out) const override {
    Stretches stretches(behavior_, false, piece, out);
    size_t done = 0;
    for (size_t at = 0; at < piece.text.size();) {
      const size_t begin = at;
      if (!is_(decode_utf8(piece.text, at))) continue;
      if (begin > done) stretches.add(done, begin, false);
      stretches.add(begin, at, true);
      done = at;
    }
    if (done < piece.text.size()) stretches.add(done, piece.text.size(), false);
    stretches.flush();
    return {};
  }

 private:
  Is is_;
  Behavior behavior_;
};
template <class Is>
PreTokenizerPtr at_characters(Is is, Behavior behavior) {
  return std::make_unique<AtCharacters<Is>>(is, behavior);
}

// Words of word characters and words of what is neither that nor white space.
class Whitespace : public PreTokenizer {
 public:
  Status split(Word piece, Scratch&, std::vector<Word>& out) const override {
    enum Kind { space, word, other } before = space;
    size_t begin = 0;
    const auto end_word = [&](size_t end) {
      if (before != space)
        out.push_back({piece.text.substr(begin, end - begin), piece.from_start && begin == 0});
    };
    for (size_t at = 0; at < piece.text.size();) {
      const size_t here = at;
      const uint32_t c = decode_utf8(piece.text, at);
      const Kind kind = flags_of(c) & kRustWord ? word : is_white_space(c) ? space : other;
      if (kind != before) {
        end_word(here);
        begin = here, before = kind;
      }
    }
    end_word(piece.text.size());
    return {};
  }
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(size_t characters) : characters_(characters) {}

  Status split(Word piece, Scratch&, std::vector<Word>& out) const override {
    for (size_t at = 0; at < piece.text.size();) {
      const size_t begin = at;
      for (size_t i = 0; i < characters_ && at < piece.text.size(); ++i) decode_utf8(piece.text, at);
      out.push_back({piece.text.substr(begin, at - begin), piece.from_start && begin == 0});
    }
    return {};
  }

 private:
  size_t characters_;
};

}  // namespace

PreTokenizerPtr make_digits(bool individual) {
  return at_characters([](uint32_t c) { return (flags_of(c) & kRustNumber) != 0; },
                       individual ? Behavior::isolated : Behavior::contiguous);
}

PreTokenizerPtr make_punctuation(Behavior behavior) {
  return at_characters([](uint32_t c) { return (flags_of(c) & kPunctuation) != 0; }, behavior);
}

PreTokenizerPtr make_whitespace_split() {
  return at_characters(is_white_space, Behavior::removed);
}

PreTokenizerPtr make_char_delimiter_split(uint32_t delimiter) {
  return at_characters([delimiter](uint32_t c) { return c == delimiter; }, Behavior::removed);
}

PreTokenizerPtr make_whitespace() {
  return std::make_unique<Whitespace>();
}

PreTokenizerPtr make_fixed_length(size_t characters) {
  return std::make_unique<FixedLength>(characters);
}

}  // namespace invar::prompt
