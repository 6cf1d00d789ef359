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
bool is_word(uint32_t c);  // word_ranges and the two join controls: \w next to a single-word added token

// Classes of a character for the normalizers and pre-tokenizers of tokenizers (tokens.12): bits of
// flags.txt.
enum Flag : uint16_t {
  kPunctuation = 1,  // of Punctuation and BertPreTokenizer
  kBertControl = 2,  // dropped by BertNormalizer's clean_text
  kNonspacing = 4,   // dropped by BertNormalizer's strip_accents
  kMark = 8,         // dropped by StripAccents
  kRustWord = 16,    // \w of Whitespace
  kRustNumber = 32,  // of Digits
  kJoinsLeft = 64,   // the rest: rules of grapheme clusters (Unicode Standard Annex 29)
  kPrepend = 128,
  kClusterControl = 256,
  kPictographic = 512,
  kExtend = 1024,
  kConjunctConsonant = 2048,
  kConjunctLinker = 4096,
  kConjunctExtend = 8192
};
uint16_t flags_of(uint32_t c);

// Appends the character's lower case, as Unicode's default mapping without context has it.
void append_lowercase(std::string& out, uint32_t c);
// The whole compatibility decomposition, ended by a 0; null if the canonical one is all there is.
const uint32_t* compatibility_decomposition(uint32_t c);

// Normalization forms of valid UTF-8; characters younger than Unicode 9.0 stay as they are
// (tokens.2).
std::string nfc(std::string_view text);
std::string nfd(std::string_view text);
std::string nfkc(std::string_view text);
std::string nfkd(std::string_view text);

// The end of the extended grapheme cluster that begins at `at`. Rules that can only part or join
// clusters of six bytes and more are left out: no one asks for those.
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace invar::prompt
