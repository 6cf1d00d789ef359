// Normalization forms (Unicode Standard Annex 15): decompose, order by combining class, compose.
#include <algorithm>
#include <vector>

#include "base/text/utf8.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

struct ClassRange {
  uint32_t first, last;
  uint8_t combining_class;
};
struct Triple {
  uint32_t a, b, c;
};
constexpr ClassRange kCombiningClasses[] = {
#include "unicode/combining.inc"
};
constexpr Triple kDecompositions[] = {
// a -> b c, ascending by a
#include "unicode/decomposition.inc"
};
constexpr Triple kCompositions[] = {
// a b -> c, ascending by (a, b)
#include "unicode/composition.inc"
};

// Hangul syllables are composed by rule (The Unicode Standard, section 3.12).
constexpr uint32_t kS = 0xAC00, kL = 0x1100, kV = 0x1161, kT = 0x11A7;
constexpr uint32_t kLCount = 19, kVCount = 21, kTCount = 28, kNCount = kVCount * kTCount,
                   kSCount = kLCount * kNCount;

struct Character {
  uint32_t code;
  uint8_t combining_class;
};

uint8_t class_of(uint32_t c) {
  if (c < kCombiningClasses[0].first) return 0;
  auto it = std::partition_point(std::begin(kCombiningClasses), std::end(kCombiningClasses),
                                 [c](auto& r) { return r.last < c; });
  return it != std::end(kCombiningClasses) && it->first <= c ? it->combining_class : 0;
}

void decompose(uint32_t c, bool compatibility, std::vector<Character>& out) {
  if (compatibility) {
    if (const uint32_t* d = compatibility_decomposition(c)) {
      for (; *d; ++d) out.push_back({*d, class_of(*d)});
      return;
    }
  }
  if (c - kS < kSCount) {
    const uint32_t s = c - kS, t = s % kTCount;
    out.push_back({kL + s / kNCount, 0});
    out.push_back({kV + s % kNCount / kTCount, 0});
    if (t) out.push_back({kT + t, 0});
    return;
  }
  auto it = std::partition_point(std::begin(kDecompositions), std::end(kDecompositions),
                                 [c](auto& d) { return d.a < c; });
  if (it == std::end(kDecompositions) || it->a != c) return out.push_back({c, class_of(c)});
  decompose(it->b, false, out);  // at most a few levels deep, by the data
  if (it->c) decompose(it->c, false, out);
}

uint32_t compose(uint32_t a, uint32_t b) {  // 0: the two do not compose
  if (a - kL < kLCount && b - kV < kVCount) return kS + ((a - kL) * kVCount + (b - kV)) * kTCount;
  if (a - kS < kSCount && (a - kS) % kTCount == 0 && b - kT - 1 < kTCount - 1) return a + (b - kT);
  auto it = std::partition_point(std::begin(kCompositions), std::end(kCompositions),
                                 [=](auto& t) { return t.a < a || (t.a == a && t.b < b); });
  return it != std::end(kCompositions) && it->a == a && it->b == b ? it->c : 0;
}

// The characters of the text, decomposed and in canonical order.
std::vector<Character> decomposed(std::string_view text, bool compatibility) {
  std::vector<Character> s;
  s.reserve(text.size());
  for (size_t i = 0; i < text.size();) decompose(decode_utf8(text, i), compatibility, s);
  for (size_t i = 0; i < s.size();) {
    size_t end = i + 1;
    if (s[i].combining_class != 0) {
      while (end < s.size() && s[end].combining_class != 0) ++end;
      std::stable_sort(s.begin() + i, s.begin() + end,
                       [](auto& a, auto& b) { return a.combining_class < b.combining_class; });
    }
    i = end;
  }
  return s;
}

void compose_all(std::vector<Character>& s) {
  size_t kept = 0, starter = SIZE_MAX;
  for (const Character& c : s) {
    if (starter != SIZE_MAX) {
      const bool adjacent = kept == starter + 1;
      const bool blocked = !adjacent && s[kept - 1].combining_class >= c.combining_class;
      if (!blocked) {
        if (uint32_t composite = compose(s[starter].code, c.code)) {
          s[starter].code = composite;
          continue;
        }
      }
    }
    if (c.combining_class == 0) starter = kept;
    s[kept++] = c;
  }
  s.resize(kept);
}

// Whether no byte of the text is as high as `lead`.
bool below(std::string_view text, uint8_t lead) {
  return std::none_of(text.begin(), text.end(), [lead](char b) { return uint8_t(b) >= lead; });
}

std::string joined(const std::vector<Character>& s, size_t size) {
  std::string out;
  out.reserve(size);
  for (const Character& c : s) append_utf8(out, c.code);
  return out;
}

}  // namespace

// Below U+0300 every character is its own NFC and combines with nothing before it; ASCII is its own
// form of every kind.
std::string nfc(std::string_view text) {
  if (below(text, 0xCC)) return std::string(text);
  std::vector<Character> s = decomposed(text, false);
  compose_all(s);
  return joined(s, text.size());
}

std::string nfd(std::string_view text) {
  return below(text, 0x80) ? std::string(text) : joined(decomposed(text, false), text.size());
}

std::string nfkc(std::string_view text) {
  if (below(text, 0x80)) return std::string(text);
  std::vector<Character> s = decomposed(text, true);
  compose_all(s);
  return joined(s, text.size());
}

std::string nfkd(std::string_view text) {
  return below(text, 0x80) ? std::string(text) : joined(decomposed(text, true), text.size());
}

}  // namespace invar::prompt
