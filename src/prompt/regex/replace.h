// Replacement of every match of a pattern by a text: of the normalizer and of the decoder Replace.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "prompt/regex/regex.h"

namespace invar::prompt {

// Bytes that a tokenizer may make of so many before it is refused (tokens.12): no Unicode form of a
// character has more than 11 times its bytes.
constexpr size_t most_rewritten(size_t bytes) {
  return 16 * bytes + (size_t{16} << 20);
}

class Replacement {
 public:
  static Result<Replacement> literal(std::string_view text, std::string content);
  static Result<Replacement> pattern(std::string_view pattern, std::string content);

  // Appends the text with its replacements. True: the first match is at the start of the text. An
  // error: the search takes too many steps, or the text becomes longer than most_rewritten().
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
