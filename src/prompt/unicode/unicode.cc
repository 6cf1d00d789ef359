// Unicode tables: general categories and word characters.
#include "prompt/unicode/unicode.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text/utf8.h"
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
struct FlagRange {
  uint32_t first, last;
  uint16_t flags;
};
constexpr FlagRange kFlags[] = {
#include "unicode/flags.inc"
};
// Mappings: a character, what it becomes, 0; ascending.
constexpr uint32_t kLowercase[] = {
#include "unicode/lowercase.inc"
};
constexpr uint32_t kCompatibility[] = {
#include "unicode/compatibility.inc"
};
constexpr std::string_view kVersion =
#include "unicode/version.inc"
    ;

template <class R>
const R* range_of(std::span<const R> ranges, uint32_t c) {
  auto it = std::partition_point(ranges.begin(), ranges.end(), [c](const R& r) { return r.last < c; });
  return it != ranges.end() && it->first <= c ? &*it : nullptr;
}

// Finds the rows of a table of mappings.
class Mapping {
 public:
  explicit Mapping(std::span<const uint32_t> table) {
    for (const uint32_t* row = table.data(); row < table.data() + table.size();) {
      rows_.push_back(row);
      while (*row) ++row;
      ++row;
    }
  }
  const uint32_t* find(uint32_t c) const {  // what it becomes, or null
    auto it = std::partition_point(rows_.begin(), rows_.end(), [c](const uint32_t* r) { return *r < c; });
    return it != rows_.end() && **it == c ? *it + 1 : nullptr;
  }

 private:
  std::vector<const uint32_t*> rows_;
};

// Flags by blocks of 256 characters: they are asked for every character of a text.
struct FlagTable {
  std::vector<uint16_t> block_of = std::vector<uint16_t>((kLastCodePoint >> 8) + 1, 0);
  std::vector<std::array<uint16_t, 256>> blocks = {{}};
  FlagTable() {
    for (const FlagRange& r : kFlags)
      for (uint32_t c = r.first; c <= r.last; ++c) {
        uint16_t& block = block_of[c >> 8];
        if (block == 0) {
          block = static_cast<uint16_t>(blocks.size());
          blocks.emplace_back();
        }
        blocks[block][c & 255] = r.flags;
      }
  }
};

}  // namespace

uint16_t flags_of(uint32_t c) {
  static const FlagTable table;
  return table.blocks[table.block_of[c >> 8]][c & 255];
}

void append_lowercase(std::string& out, uint32_t c) {
  static const Mapping mapping{kLowercase};
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (const uint32_t* lower = mapping.find(c)) {
    for (; *lower; ++lower) append_utf8(out, *lower);
  } else {
    append_utf8(out, c);
  }
}

const uint32_t* compatibility_decomposition(uint32_t c) {
  static const Mapping mapping{kCompatibility};
  return c < 0xA0 ? nullptr : mapping.find(c);
}

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

bool is_word(uint32_t c) {
  return c == 0x200C || c == 0x200D || range_of(word_ranges(), c);
}

}  // namespace invar::prompt
