// UTF-8 decoding and repair, see utf8.h.
#include "base/text/utf8.h"

#include <cstring>

namespace invar {

Utf8Sequence sequence_at(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {Utf8Sequence::well, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Sequence::ill, 1};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and code points above U+10FFFF.
  uint8_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (at + i == bytes.size()) return {Utf8Sequence::cut, i};
    if (byte(at + i) < low || byte(at + i) > high) return {Utf8Sequence::ill, i};
    low = 0x80, high = 0xBF;
  }
  return {Utf8Sequence::well, length};
}

static bool eight_ascii(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return (word & 0x8080808080808080u) == 0;
}

size_t valid_prefix(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (i + 8 <= text.size() && eight_ascii(text.data() + i)) {
      i += 8;
      continue;
    }
    const Utf8Sequence s = sequence_at(text, i);
    if (s.kind != Utf8Sequence::well) return i;
    i += s.length;
  }
  return text.size();
}

size_t append_lossy(std::string& out, std::string_view bytes, bool more_follow) {
  size_t i = 0;
  while (i < bytes.size()) {
    const Utf8Sequence s = sequence_at(bytes, i);
    if (s.kind == Utf8Sequence::cut && more_follow) break;
    out += s.kind == Utf8Sequence::well ? bytes.substr(i, s.length) : std::string_view("\xEF\xBF\xBD");
    i += s.length;
  }
  return i;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

}  // namespace invar
