// The syntax tree of a pattern. Grammar and meaning: spec/tokens.md tokens.5.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "prompt/regex/charset.h"

namespace invar::prompt {

enum class Greed { greedy, lazy, possessive };

struct Node {
  enum Kind {
    empty,     // matches nothing, always
    set,       // one code point of `chars`
    sequence,  // all kids in turn
    choice,    // the first kid that leads to a match
    repeat,    // kids[0], min..max times
    look,      // kids[0] must (not, with `negative`) match here; consumes nothing
    atomic,    // kids[0], whose first match is final
    line_start,
    line_end,
    text_start,
    text_end
  } kind = empty;
  CharSet chars = {};
  std::vector<Node> kids = {};
  int min = 0, max = 0;  // max -1: without bound
  Greed greed = Greed::greedy;
  bool negative = false;
};

Result<Node> parse_pattern(std::string_view pattern);  // valid UTF-8
Node literal_pattern(std::string_view text);           // valid UTF-8, matched as it stands

bool nullable(const Node& n);      // can match without consuming
CharSet first_set(const Node& n);  // what a match can begin with, if it consumes

}  // namespace invar::prompt
