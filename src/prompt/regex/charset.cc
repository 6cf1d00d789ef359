// Sets of code points for regular expressions.
#include "prompt/regex/charset.h"

#include <algorithm>
#include <string>

namespace invar::prompt {
namespace {

std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

bool in_group(std::string_view category, std::string_view group) {
  if (group == "lc") return category == "lu" || category == "ll" || category == "lt";
  return category == group || (group.size() == 1 && category[0] == group[0]);
}

}  // namespace

CharSet::CharSet(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (const Range& r : ranges) {
    if (!ranges_.empty() && r.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    } else {
      ranges_.push_back(r);
    }
  }
}

bool CharSet::property(std::string_view name, CharSet& out) {
  const std::string wanted = plain_name(name);
  if (wanted == "han" || wanted == "script=han") {
    out = CharSet(std::vector<Range>(han_ranges().begin(), han_ranges().end()));
    return true;
  }
  std::vector<Range> in, listed;
  bool known = false, with_unassigned = false;
  for (std::string_view c : kCategoryNames) {
    const bool part = in_group(plain_name(c), wanted);
    known |= part;
    with_unassigned |= part && c == "Cn";
  }
  if (!known) return false;
  for (const CategoryRange& r : category_ranges()) {
    listed.push_back({r.first, r.last});
    if (in_group(plain_name(kCategoryNames[static_cast<int>(r.category)]), wanted))
      in.push_back(listed.back());
  }
  out = CharSet(std::move(in));
  if (with_unassigned) out = out | ~CharSet(std::move(listed));
  return true;
}

CharSet CharSet::white_space() {
  std::vector<Range> in;
  for (uint32_t c = 0; c <= 0x3000; ++c)
    if (is_white_space(c)) in.push_back({c, c});
  return CharSet(std::move(in));
}

CharSet CharSet::decimal_digits() {
  CharSet out;
  property("Nd", out);
  return out;
}

CharSet CharSet::word() {
  // Oniguruma takes the numbers of Latin-1 for letters here.
  return CharSet(std::vector<Range>(word_ranges().begin(), word_ranges().end())) |
         CharSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
}

CharSet CharSet::operator~() const {
  CharSet out;
  uint32_t next = 0;
  for (const Range& r : ranges_) {
    if (r.first > next) out.ranges_.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastCodePoint) out.ranges_.push_back({next, kLastCodePoint});
  return out;
}

CharSet CharSet::operator|(const CharSet& o) const {
  std::vector<Range> all = ranges_;
  all.insert(all.end(), o.ranges_.begin(), o.ranges_.end());
  return CharSet(std::move(all));
}

bool CharSet::contains(uint32_t c) const {
  auto it = std::partition_point(ranges_.begin(), ranges_.end(), [c](const Range& r) { return r.last < c; });
  return it != ranges_.end() && it->first <= c;
}

bool CharSet::operator==(const CharSet& o) const {
  return std::equal(ranges_.begin(), ranges_.end(), o.ranges_.begin(), o.ranges_.end(),
                    [](auto& a, auto& b) { return a.first == b.first && a.last == b.last; });
}

Bitmap::Bitmap(const CharSet& set) : block_of_((kLastCodePoint + 1) >> 8, 0) {
  blocks_.push_back({0, 0, 0, 0});
  blocks_.push_back({~0ull, ~0ull, ~0ull, ~0ull});
  for (const Range& r : set.ranges()) {
    for (uint32_t block = r.first >> 8; block <= r.last >> 8; ++block) {
      const uint32_t first = std::max(r.first, block << 8), last = std::min(r.last, block << 8 | 255);
      if (last - first == 255) {
        block_of_[block] = 1;
        continue;
      }
      if (block_of_[block] == 0) {
        block_of_[block] = static_cast<uint16_t>(blocks_.size());
        blocks_.push_back({0, 0, 0, 0});
      }
      for (uint32_t c = first; c <= last; ++c) blocks_[block_of_[block]][c >> 6 & 3] |= 1ull << (c & 63);
    }
  }
  ascii_[0] = blocks_[block_of_[0]][0];
  ascii_[1] = blocks_[block_of_[0]][1];
}

}  // namespace invar::prompt
