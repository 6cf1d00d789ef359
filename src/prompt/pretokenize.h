// Pre-tokenizers: split a text into the words that BPE encodes one by one (spec/tokens.md
// tokens.4).
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "prompt/regex/regex.h"

namespace invar::prompt {

enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct Split {
  Regex regex;
  Behavior behavior = Behavior::isolated;
  bool invert = false;
  std::string shown;  // the pattern, for errors
};
struct Digits {
  bool individual = false;
};
using PreTokenizer = std::variant<Split, Digits>;

struct PreTokenizers {
  std::vector<PreTokenizer> steps;
  bool prefix_space =
      false;  // ByteLevel, the last of them: a piece that does not begin with a space gets one,
  std::vector<Split> byte_level;  // and (none or one) the pattern of use_regex

  struct Scratch {
    Regex::Scratch regex;
    std::vector<std::string_view> words, next;
    std::deque<std::string> prefixed;  // pieces with their new space; they outlive the words
  };
  // Calls word(std::string_view) for every word of a piece of text, in order. The views live as
  // long as the text and the scratch memory.
  template <class F>
  Status run(std::string_view text, Scratch& scratch, F&& word) const;

  static Status split(const PreTokenizer& step, std::string_view text, Regex::Scratch& scratch,
                      std::vector<std::string_view>& out);
};

template <class F>
Status PreTokenizers::run(std::string_view text, Scratch& scratch, F&& word) const {
  auto& words = scratch.words;
  words.assign(1, text);
  const auto apply = [&](const PreTokenizer& step) -> Status {
    scratch.next.clear();
    for (std::string_view w : words) INVAR_CHECK_OK(split(step, w, scratch.regex, scratch.next));
    words.swap(scratch.next);
    return {};
  };
  for (const PreTokenizer& s : steps) INVAR_CHECK_OK(apply(s));
  if (!prefix_space) {
    if (!byte_level.empty()) {
      INVAR_CHECK_OK(apply(byte_level[0]));
    }
    for (std::string_view w : words) INVAR_CHECK_OK(word(w));
    return {};
  }
  const std::vector<std::string_view> pieces = words;
  for (std::string_view p : pieces) {
    words.assign(1, p.starts_with(' ') ? p : std::string_view(scratch.prefixed.emplace_back(" ").append(p)));
    if (!byte_level.empty()) {
      INVAR_CHECK_OK(apply(byte_level[0]));
    }
    for (std::string_view w : words) INVAR_CHECK_OK(word(w));
  }
  return {};
}

}  // namespace invar::prompt
