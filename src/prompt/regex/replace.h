// Replacement of every match of a pattern by a text: of the normalizer and of the decoder Replace.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "prompt/regex/regex.h"

namespace invar::prompt {

class Replacement {
 public:
  static Result<Replacement> literal(std::string_view text, std::string content);
  static Result<Replacement> pattern(std::string_view pattern, std::string content);

  // Appends the text with its replacements. True: the first match is at the start of the text. An
  // error: the search takes too many steps.
  Result<bool> apply(std::string_view text, std::string& out, Regex::Scratch& scratch) const;
  const std::string& content() const { return content_; }
  const std::string& plain() const { return plain_; }  // the pattern, if it is a plain text, else ""

 private:
  Replacement(Regex regex, std::string content, std::string shown)
      : regex_(std::move(regex)), content_(std::move(content)), shown_(std::move(shown)) {}
  Regex regex_;
  std::string plain_, content_, shown_;
};

}  // namespace invar::prompt
