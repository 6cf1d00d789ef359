// Extended grapheme clusters (Unicode Standard Annex 29), as far as short ones depend on them.
#include "base/text/utf8.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

enum class Hangul : uint8_t { none, l, v, t, lv, lvt };

Hangul hangul(uint32_t c) {
  if (c < 0x1100 || c > 0xD7FB) return Hangul::none;
  if (c >= 0xAC00 && c <= 0xD7A3) return (c - 0xAC00) % 28 == 0 ? Hangul::lv : Hangul::lvt;
  if (c <= 0x115F || (c >= 0xA960 && c <= 0xA97C)) return Hangul::l;
  if (c <= 0x11A7 || (c >= 0xD7B0 && c <= 0xD7C6))
    return c <= 0x11A7 || c >= 0xD7B0 ? Hangul::v : Hangul::none;
  if (c <= 0x11FF || c >= 0xD7CB) return Hangul::t;
  return Hangul::none;
}

bool hangul_joins(Hangul before, Hangul after) {  // GB6, GB7, GB8
  switch (before) {
    case Hangul::l:
      return after == Hangul::l || after == Hangul::v || after == Hangul::lv || after == Hangul::lvt;
    case Hangul::lv:
    case Hangul::v: return after == Hangul::v || after == Hangul::t;
    case Hangul::lvt:
    case Hangul::t: return after == Hangul::t;
    case Hangul::none: break;
  }
  return false;
}

constexpr uint32_t kJoiner = 0x200D;

}  // namespace

size_t grapheme_end(std::string_view text, size_t at) {
  uint32_t before = decode_utf8(text, at);
  uint16_t flags = flags_of(before);
  // GB11: a pictograph, extenders and a joiner; GB9c: a consonant and marks, one a linker.
  bool pictographic = flags & kPictographic, joined = false;
  bool consonant = flags & kConjunctConsonant, linked = false;
  while (at < text.size()) {
    size_t next = at;
    const uint32_t c = decode_utf8(text, next);
    const uint16_t f = flags_of(c);
    if (before == '\r' && c == '\n') return next;                      // GB3
    if ((flags | f) & kClusterControl) return at;                      // GB4, GB5
    const bool continues = (f & kJoinsLeft) || (flags & kPrepend) ||   // GB9, GB9a, GB9b
                           hangul_joins(hangul(before), hangul(c)) ||  // GB6, GB7, GB8
                           (joined && (f & kPictographic)) || (linked && (f & kConjunctConsonant));
    if (!continues) return at;
    joined = pictographic && c == kJoiner;
    pictographic = (f & kPictographic) || (pictographic && !joined && (f & kExtend));
    if (f & kConjunctConsonant) {
      consonant = true, linked = false;
    } else if (consonant && (f & (kConjunctLinker | kConjunctExtend))) {
      linked = linked || (f & kConjunctLinker);
    } else {
      consonant = linked = false;
    }
    before = c, flags = f, at = next;
  }
  return at;
}

}  // namespace invar::prompt
