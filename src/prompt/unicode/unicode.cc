// Unicode tables: general categories and word characters.
#include "prompt/unicode/unicode.h"

#include <algorithm>

#include "prompt/prompt.h"

namespace invar::prompt {
namespace {

constexpr CategoryRange kCategories[] = {
#include "unicode/category.inc"
};
constexpr Range kWord[] = {
#include "unicode/word.inc"
};
constexpr Range kHan[] = {
#include "unicode/han.inc"
};
constexpr std::string_view kVersion =
#include "unicode/version.inc"
    ;

template <class R>
const R* range_of(std::span<const R> ranges, uint32_t c) {
  auto it = std::partition_point(ranges.begin(), ranges.end(), [c](const R& r) { return r.last < c; });
  return it != ranges.end() && it->first <= c ? &*it : nullptr;
}

}  // namespace

std::string_view unicode_version() {
  return kVersion;
}

std::span<const CategoryRange> category_ranges() {
  return kCategories;
}
std::span<const Range> word_ranges() {
  return kWord;
}
std::span<const Range> han_ranges() {
  return kHan;
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_number(uint32_t c) {
  const CategoryRange* r = range_of(category_ranges(), c);
  return r && (r->category == Category::Nd || r->category == Category::Nl || r->category == Category::No);
}

bool is_word(uint32_t c) {
  return c == 0x200C || c == 0x200D || range_of(word_ranges(), c);
}

}  // namespace invar::prompt
