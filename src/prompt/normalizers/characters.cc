// Normalizers that look at each character by itself, and the forms of Unicode.
#include "base/text/utf8.h"
#include "prompt/models/bpe.h"
#include "prompt/normalizers/normalizer.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

// A normalizer that is a function of the text; F: void(Normalizer::Text&).
template <class F>
class Function : public Normalizer {
 public:
  explicit Function(F f) : f_(std::move(f)) {}
  Status apply(Text& text, Regex::Scratch&) const override {
    f_(text);
    return {};
  }

 private:
  F f_;
};
template <class F>
NormalizerPtr function(F f) {
  return std::make_unique<Function<F>>(std::move(f));
}

// Calls f(character, out) for each character; f returns false where it drops the character.
template <class F>
void each(Normalizer::Text& t, F&& f) {
  std::string out;
  out.reserve(t.text.size());
  for (size_t at = 0; at < t.text.size();) {
    const bool first = at == 0;
    if (!f(decode_utf8(t.text, at), out) && first) t.from_start = false;
  }
  t.text = std::move(out);
}

// Drops the characters that have one of the flags.
void drop(Normalizer::Text& t, uint16_t flags) {
  each(t, [flags](uint32_t c, std::string& out) {
    if (flags_of(c) & flags) return false;
    append_utf8(out, c);
    return true;
  });
}

void lowercase(Normalizer::Text& t) {
  each(t, [](uint32_t c, std::string& out) { return append_lowercase(out, c), true; });
}

bool chinese(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void clean(Normalizer::Text& t) {
  each(t, [](uint32_t c, std::string& out) {
    if (c == 0xFFFD || (flags_of(c) & kBertControl)) return false;
    append_utf8(out, is_white_space(c) ? ' ' : c);
    return true;
  });
}

bool nmt_dropped(uint32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
         c == 0x9F;
}
bool nmt_space(uint32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

}  // namespace

NormalizerPtr make_unicode_normalizer(Form form) {
  return function([form](Normalizer::Text& t) {
    switch (form) {
      case Form::nfc: t.text = nfc(t.text); break;
      case Form::nfd: t.text = nfd(t.text); break;
      case Form::nfkc: t.text = nfkc(t.text); break;
      case Form::nfkd: t.text = nfkd(t.text); break;
    }
  });
}

NormalizerPtr make_lowercase() {
  return function(lowercase);
}

NormalizerPtr make_strip(bool left, bool right) {
  return function([left, right](Normalizer::Text& t) {
    size_t end = t.text.size(), begin = 0;
    for (size_t next = 0; left && begin < end; begin = next)
      if (!is_white_space(decode_utf8(t.text, next))) break;
    while (right && end > begin) {
      const size_t last = previous_utf8(t.text, end);
      size_t next = last;
      if (!is_white_space(decode_utf8(t.text, next))) break;
      end = last;
    }
    if (begin > 0) t.from_start = false;
    t.text = t.text.substr(begin, end - begin);
  });
}

NormalizerPtr make_strip_accents() {
  return function([](Normalizer::Text& t) { drop(t, kMark); });
}

NormalizerPtr make_nmt() {
  return function([](Normalizer::Text& t) {
    each(t, [](uint32_t c, std::string& out) {
      if (nmt_dropped(c)) return false;
      append_utf8(out, nmt_space(c) ? ' ' : c);
      return true;
    });
  });
}

NormalizerPtr make_prepend(std::string prefix) {
  return function([prefix = std::move(prefix)](Normalizer::Text& t) {
    if (!t.text.empty()) t.text.insert(0, prefix);
  });
}

NormalizerPtr make_byte_level_normalizer() {
  return function([](Normalizer::Text& t) { t.text = characters_of_bytes(t.text); });
}

NormalizerPtr make_bert_normalizer(const BertOptions& o) {
  return function([o](Normalizer::Text& t) {
    if (o.clean_text) clean(t);
    if (o.handle_chinese_chars)
      each(t, [](uint32_t c, std::string& out) {
        if (chinese(c)) out += ' ';
        append_utf8(out, c);
        if (chinese(c)) out += ' ';
        return true;
      });
    if (o.strip_accents) {
      t.text = nfd(t.text);
      drop(t, kNonspacing);
    }
    if (o.lowercase) lowercase(t);
  });
}

}  // namespace invar::prompt
