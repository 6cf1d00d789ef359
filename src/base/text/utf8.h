// UTF-8: validation, decoding, and replacement of ill-formed bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace invar {

// The sequence at a position of a byte string. `ill` and `cut` give the length of the maximal
// subpart (The Unicode Standard, section 3.9, U+FFFD substitution); `cut` means that more bytes
// could complete it.
struct Utf8Sequence {
  enum Kind { well, ill, cut } kind;
  size_t length;
};
Utf8Sequence sequence_at(std::string_view bytes, size_t at);

// The offset of the first byte that does not belong to valid UTF-8, or text.size().
size_t valid_prefix(std::string_view text);

// Appends the bytes, and U+FFFD for every maximal subpart of an ill-formed sequence. With
// `more_follow` an incomplete sequence at the end is left for later. Returns the number of bytes
// consumed.
size_t append_lossy(std::string& out, std::string_view bytes, bool more_follow);

void append_utf8(std::string& out, uint32_t code_point);

// The code point at `at`, which moves behind it. The text must be valid UTF-8.
inline uint32_t decode_utf8(std::string_view text, size_t& at) {
  const auto* p = reinterpret_cast<const uint8_t*>(text.data()) + at;
  if (p[0] < 0x80) return at += 1, p[0];
  if (p[0] < 0xE0) return at += 2, (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
  if (p[0] < 0xF0) return at += 3, (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  return at += 4, (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

// The start of the code point that ends before `at` (> 0).
inline size_t previous_utf8(std::string_view text, size_t at) {
  do --at;
  while ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

}  // namespace invar
