// Sets of code points: as ranges while a pattern is read, as a two-level bitmap while text is
// matched.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "prompt/unicode/unicode.h"

namespace invar::prompt {

class CharSet {
 public:
  CharSet() = default;
  explicit CharSet(std::vector<Range> ranges);  // in any order, overlapping or not
  static CharSet one(uint32_t c) { return CharSet({{c, c}}); }
  static CharSet all() { return CharSet({{0, kLastCodePoint}}); }
  // A general category ("Lu"), a group of them ("L", "LC"), or "Han"; what a name means is not
  // case-sensitive and ignores spaces, hyphens and underscores. False if the name is none of these.
  static bool property(std::string_view name, CharSet& out);
  static CharSet white_space();
  static CharSet decimal_digits();
  static CharSet word();

  CharSet operator~() const;
  CharSet operator|(const CharSet& o) const;
  CharSet operator&(const CharSet& o) const { return ~(~*this | ~o); }
  bool contains(uint32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }  // ascending, disjoint, not adjacent
  bool operator==(const CharSet& o) const;

 private:
  std::vector<Range> ranges_;
};

class Bitmap {
 public:
  explicit Bitmap(const CharSet& set);
  bool ascii(uint8_t c) const { return ascii_[c >> 6] >> (c & 63) & 1; }
  bool contains(uint32_t c) const {
    const Block& b = blocks_[block_of_[c >> 8]];
    return b[c >> 6 & 3] >> (c & 63) & 1;
  }

 private:
  using Block = std::array<uint64_t, 4>;  // 256 code points
  uint64_t ascii_[2];
  std::vector<uint16_t> block_of_;
  std::vector<Block> blocks_;  // the first two are empty and full
};

}  // namespace invar::prompt
