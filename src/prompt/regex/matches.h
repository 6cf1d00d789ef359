// All matches of a pattern in a text, one after the other.
#pragma once

#include <optional>
#include <string_view>

#include "base/text/utf8.h"
#include "prompt/regex/regex.h"

namespace invar::prompt {

// Matches from left to right; an empty one directly behind another match is none (tokens.5).
class Matches {
 public:
  Matches(const Regex& regex, std::string_view text, Regex::Scratch& scratch)
      : regex_(regex), text_(text), scratch_(scratch) {
    scratch_.steps = 10000 + 500 * static_cast<int64_t>(text.size());
  }

  std::optional<Regex::Match> next() {
    while (at_ <= text_.size()) {
      const auto m = regex_.find(text_, at_, scratch_);
      if (!m) return std::nullopt;
      if (m->begin == m->end && m->end == last_) {
        if (at_ == text_.size()) return std::nullopt;
        decode_utf8(text_, at_);
        continue;
      }
      at_ = last_ = m->end;
      return m;
    }
    return std::nullopt;
  }
  bool gave_up() const { return scratch_.steps < 0; }  // too many steps

 private:
  const Regex& regex_;
  std::string_view text_;
  Regex::Scratch& scratch_;
  size_t at_ = 0;
  size_t last_ = SIZE_MAX;  // where the match before ended
};

}  // namespace invar::prompt
