// Precompiled: the character map that a SentencePiece model carries. The trie is that of
// darts-clone (https://github.com/s-yata/darts-clone): units of 32 bits, bits 0-7 the label, bit 8
// "a value follows", bits 10-30 the offset (times 256 with bit 9); a unit with bit 31 is a value.
#include "base/text/utf8.h"
#include "prompt/normalizers/normalizer.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

constexpr uint32_t kValue = 1u << 31;

size_t offset_of(uint32_t unit) {
  return static_cast<size_t>(unit >> 10) << ((unit & 1u << 9) >> 6);
}

// Whole clusters of fewer than six bytes are sought, then each character of the others.
constexpr size_t kShortCluster = 6;

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}

  Status apply(Text& t, Regex::Scratch&) const override {
    const std::string_view text = t.text;
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t end = next_cluster(text, at);
      if (end - at < kShortCluster) {
        if (const Charsmap::Match m = map_.shortest(text.substr(at, end - at)); m.length) {
          out += m.replacement;
          at = end;
          continue;
        }
      }
      while (at < end) {
        size_t next = at;
        decode_utf8(text, next);
        const std::string_view character = text.substr(at, next - at);
        const Charsmap::Match m = map_.shortest(character);
        out += m.length ? m.replacement : character;
        at = next;
      }
    }
    t.text = std::move(out);
    return {};
  }

 private:
  // Two ASCII characters are two clusters, but for a line feed behind a carriage return.
  static size_t next_cluster(std::string_view text, size_t at) {
    const auto ascii = [&](size_t i) { return static_cast<uint8_t>(text[i]) < 0x80; };
    if (ascii(at) && (at + 1 == text.size() || (ascii(at + 1) && text[at] != '\r'))) return at + 1;
    return grapheme_end(text, at);
  }

  Charsmap map_;
};

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) return map;
  const auto word = [&](size_t at) {
    uint32_t w = 0;
    for (size_t i = 0; i < 4; ++i) w |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << 8 * i;
    return w;
  };
  if (bytes.size() < 8) return bad_input("the character map is cut short");
  const uint32_t size = word(0);
  if (size % 4 != 0 || size < 4 || size > bytes.size() - 4)
    return bad_input("the character map says that its trie has " + std::to_string(size) + " bytes of " +
                     std::to_string(bytes.size()));
  map.trie_.resize(size / 4);
  for (size_t i = 0; i < map.trie_.size(); ++i) map.trie_[i] = word(4 + 4 * i);
  map.texts_ = bytes.substr(4 + size);
  if (const size_t at = valid_prefix(map.texts_); at != map.texts_.size())
    return bad_input("the character map holds text that is not UTF-8");
  return map;
}

Charsmap::Match Charsmap::shortest(std::string_view text) const {
  return find(text, false);
}
Charsmap::Match Charsmap::longest(std::string_view text) const {
  return find(text, true);
}

Charsmap::Match Charsmap::find(std::string_view text, bool longest) const {
  Match found{0, {}};
  if (trie_.empty()) return found;
  size_t at = offset_of(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= trie_.size() || (trie_[at] & (kValue | 0xFF)) != byte) break;
    const uint32_t unit = trie_[at];
    at ^= offset_of(unit);
    if (at >= trie_.size()) break;
    if (unit & 1u << 8) {
      const size_t begin = std::min<size_t>(trie_[at] & ~kValue, texts_.size());
      const size_t end = std::min(texts_.find('\0', begin), texts_.size());
      found = {i + 1, std::string_view(texts_).substr(begin, end - begin)};
      if (!longest) break;
    }
  }
  return found;
}

NormalizerPtr make_precompiled(Charsmap map) {
  return std::make_unique<Precompiled>(std::move(map));
}

}  // namespace invar::prompt
