// The regular expressions of pre-tokenizers: a backtracking matcher that never recurses over the
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "prompt/regex/charset.h"

namespace invar::prompt {

struct Node;

class Regex {
 public:
  static Result<Regex> pattern(std::string_view pattern);  // spec/tokens.md tokens.5
  static Result<Regex> literal(std::string_view text);

  // Working memory of a search, kept between searches; `steps` is what is left before a search
  // gives up.
  struct Scratch {
    struct Frame {
      uint32_t pc;
      uint32_t extra;
      size_t at, floor;
    };
    std::vector<Frame> stack;
    int64_t steps = 0;
  };
  struct Match {
    size_t begin, end;
  };
  // The leftmost match that begins at `from` or later. Nothing found and scratch.steps < 0: given
  // up.
  std::optional<Match> find(std::string_view text, size_t from, Scratch& scratch) const;

 private:
  struct Code {
    enum Op : uint8_t {
      chars,           // one code point of set[x]
      run,             // as many of set[x] as there are, n[0]..n[1]; gives back one at a time
      run_possessive,  // gives nothing back
      run_lazy,        // n[0], then one more at a time
      choose,          // branches[x]
      jump,            // to x
      prefer,          // go on; on failure go to x
      defer,           // go to x; on failure go on
      look,
      look_not,  // until the matching look_end; x: behind it
      look_end,
      atomic,
      atomic_end,
      line_start,
      line_end,
      text_start,
      text_end,
      match
    } op;
    uint32_t x = 0;
    uint32_t n[2] = {0, 0};
  };
  // A choice: which of up to 64 branches can begin with an ASCII byte, with another character, or
  // at the end.
  struct Branches {
    uint64_t by_byte[128] = {}, other = 0, at_end = 0;
    std::vector<uint32_t> target;
  };
  class Compiler;
  static constexpr uint32_t kNoBound = UINT32_MAX;

  static Result<Regex> compile(const Node& n, std::string_view text);
  bool match_at(std::string_view text, size_t begin, size_t& end, Scratch& scratch) const;
  uint64_t open_branches(const Branches& b, std::string_view text, size_t at) const;
  size_t run_of(const Bitmap& set, std::string_view text, size_t at, uint32_t most, uint32_t& count) const;

  std::vector<Code> code_;
  std::vector<Bitmap> sets_;
  std::vector<Branches> branches_;
};

}  // namespace invar::prompt
