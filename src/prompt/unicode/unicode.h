// The pinned Unicode tables: general categories, the properties that patterns use, and NFC. What is
// pinned, and why: spec/tokens.md tokens.2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace invar::prompt {

enum class Category : uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co,
  Cn
};
inline constexpr std::string_view kCategoryNames[] = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};
inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

struct Range {
  uint32_t first, last;  // inclusive
};
struct CategoryRange {
  uint32_t first, last;
  Category category;
};

std::span<const CategoryRange> category_ranges();  // ascending; what is not covered is Cn
std::span<const Range> word_ranges();              // Alphabetic, M, Nd, Pc
std::span<const Range> han_ranges();

bool is_white_space(uint32_t c);  // the property White_Space
bool is_number(uint32_t c);       // Nd, Nl, No
bool is_word(uint32_t c);  // word_ranges and the two join controls: \w next to a single-word added token

// Normalization Form C of valid UTF-8; characters younger than Unicode 9.0 stay as they are
// (tokens.2).
std::string nfc(std::string_view text);

}  // namespace invar::prompt
