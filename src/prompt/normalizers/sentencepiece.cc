// The normalizer of SentencePiece files, see sentencepiece.h.
#include "prompt/normalizers/sentencepiece.h"

#include "base/text/utf8.h"

namespace invar::prompt {
namespace {

class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(SentencePieceRules rules, std::shared_ptr<const Pieces> pieces)
      : rules_(std::move(rules)),
        pieces_(std::move(pieces)),
        space_(rules_.escape_whitespaces ? kSpace : " ") {}

  Status apply(Text& t, Regex::Scratch&) const override {
    const std::string_view text = t.text;
    size_t at = 0;
    if (rules_.remove_extra_whitespaces)
      for (size_t next = 0; at < text.size() && prefix(text, next) == " ";) at = next;
    std::string out;
    if (at < text.size()) {
      if (rules_.add_dummy_prefix) out += space_;
      out.reserve(text.size() * 3 / 2 + 16);
      bool after_space = rules_.remove_extra_whitespaces;
      while (at < text.size()) {
        std::string_view part = prefix(text, at);
        while (after_space && part.starts_with(' ')) part.remove_prefix(1);
        for (const char c : part) {
          if (c == ' ') {
            out += space_;
          } else {
            out += c;
          }
        }
        if (!part.empty()) after_space = rules_.remove_extra_whitespaces && part.ends_with(' ');
      }
      while (rules_.remove_extra_whitespaces && out.ends_with(space_)) out.resize(out.size() - space_.size());
    }
    t.text = std::move(out);
    return {};
  }

 private:
  static constexpr std::string_view kSpace = "\xE2\x96\x81";

  // The text that takes the place of that at `at`: a user-defined piece itself, the longest key's
  // text, or a character.
  std::string_view prefix(std::string_view text, size_t& at) const {
    const std::string_view rest = text.substr(at);
    if (const size_t length = pieces_->user_defined_at(rest)) return at += length, rest.substr(0, length);
    if (const Charsmap::Match m = rules_.charsmap.longest(rest); m.length)
      return at += m.length, m.replacement;
    size_t next = at;
    decode_utf8(text, next);
    const size_t length = next - at;
    at = next;
    return rest.substr(0, length);
  }

  SentencePieceRules rules_;
  std::shared_ptr<const Pieces> pieces_;
  std::string_view space_;
};

}  // namespace

NormalizerPtr make_sentencepiece_normalizer(SentencePieceRules rules, std::shared_ptr<const Pieces> pieces) {
  return std::make_unique<SentencePieceNormalizer>(std::move(rules), std::move(pieces));
}

}  // namespace invar::prompt
