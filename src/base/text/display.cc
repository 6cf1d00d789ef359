// Text for terminals, see display.h.
#include "base/text/display.h"

#include <algorithm>
#include <iterator>

#include "base/text/utf8.h"

namespace invar {
namespace {

// Control characters (Cc), and of the format characters (Cf), separators and
// Default_Ignorable_Code_Point of Unicode 16 those that show nothing. Variation selectors belong to
// the visible character before them and stay.
constexpr struct Range {
  uint32_t first, last;
  bool writing =
      false;  // scripts and emoji are written with them, and they leave the order of other characters alone
} kHidden[] = {{0x00, 0x1F},           {0x7F, 0x9F},           {0xAD, 0xAD, true},  // soft hyphen
               {0x34F, 0x34F, true},   {0x61C, 0x61C, true},                        // Arabic letter mark
               {0x115F, 0x1160, true}, {0x17B4, 0x17B5, true}, {0x180E, 0x180E, true},
               {0x200B, 0x200F, true},  // zero-width space, joiners, direction marks
               {0x2028, 0x2029},        // line and paragraph separator
               {0x202A, 0x202E},        // embeddings and overrides of direction
               {0x2060, 0x2060, true},  // word joiner
               {0x2061, 0x206F},        // isolates of direction, invisible operators
               {0x3164, 0x3164, true}, {0xFEFF, 0xFEFF},       {0xFFA0, 0xFFA0, true},
               {0xFFF0, 0xFFFB},       {0x1BCA0, 0x1BCA3},     {0x1D173, 0x1D17A},
               {0xE0000, 0xE00FF},     {0xE01F0, 0xE0FFF}};

const Range* hidden(uint32_t c) {
  const auto* r = std::lower_bound(std::begin(kHidden), std::end(kHidden), c,
                                   [](const Range& range, uint32_t x) { return range.last < x; });
  return r != std::end(kHidden) && r->first <= c ? r : nullptr;
}

std::string hex(uint32_t v, int least) {
  std::string digits;
  for (; v != 0 || static_cast<int>(digits.size()) < least; v >>= 4) digits += "0123456789abcdef"[v & 15];
  return {digits.rbegin(), digits.rend()};
}

// `stays(c, range)`: of a code point that shows nothing. `escape`: of one, or of a byte that is no
// UTF-8 (then -1 and the byte).
template <class Stays, class Escape>
std::string escaped(std::string_view text, const Stays& stays, const Escape& escape) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte >= 0x20 && byte < 0x7F) {
      out += text[at++];
    } else if (sequence_at(text, at).kind != Utf8Sequence::well) {
      out += escape(-1, byte), ++at;
    } else {
      size_t next = at;
      const uint32_t c = decode_utf8(text, next);
      const Range* range = hidden(c);
      if (!range || stays(c, *range))
        out += text.substr(at, next - at);
      else
        out += escape(static_cast<int32_t>(c), 0);
      at = next;
    }
  }
  return out;
}

std::string spelled(int32_t c, uint8_t byte) {
  if (c < 0x80) return "\\x" + hex(c < 0 ? byte : static_cast<uint32_t>(c), 2);
  return "\\u{" + hex(static_cast<uint32_t>(c), 1) + "}";
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(
      text, [](uint32_t, const Range&) { return false; }, spelled);
}

std::string printable_lines(std::string_view text) {
  return escaped(
      text, [](uint32_t c, const Range& r) { return c == '\n' || c == '\t' || r.writing; }, spelled);
}

// Outside its strings JSON has no such character but line breaks and tabs, and within them it has
// neither.
std::string printable_json(std::string_view json) {
  return escaped(
      json, [](uint32_t c, const Range&) { return c == '\n' || c == '\t'; },
      [](int32_t c, uint8_t) {
        if (c < 0) return std::string("\\ufffd");
        const auto u = static_cast<uint32_t>(c);
        if (u < 0x10000) return "\\u" + hex(u, 4);
        return "\\u" + hex(0xD7C0 + (u >> 10), 4) + "\\u" + hex(0xDC00 | (u & 0x3FF), 4);
      });
}

std::string excerpt(std::string_view text, size_t longest) {
  if (text.size() <= longest) return printable(text);
  const auto boundary = [&](size_t at) {  // not within a character, where there are characters
    for (size_t back = 0; back < 3 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; ++back) --at;
    return at;
  };
  const size_t half = longest / 2;
  return printable(text.substr(0, boundary(half))) + "[...]" +
         printable(text.substr(boundary(text.size() - half)));
}

std::string printable(const Error& error) {
  std::string text = printable(error.message);
  for (const std::string& item : error.items) text += "\n  " + printable(item);
  return text;
}

}  // namespace invar
