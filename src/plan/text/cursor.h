// The lexer of one line of a plan, from left to right. After the first failure every call fails, so
// callers check once, at the end.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/attributes.h"

namespace invar::plan {

// 'text' in quotes, shortened: for error messages.
std::string brief(std::string_view text);

class Cursor {
 public:
  explicit Cursor(std::string_view line) : rest_(line) {}

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  void fail(std::string why) {
    if (ok()) error_ = std::move(why);
    rest_ = {};
  }

  bool at_end() const { return rest_.empty(); }
  bool at(std::string_view text) const { return rest_.starts_with(text); }
  bool at_digit() const { return !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; }
  bool accept(std::string_view text);  // skips `text` if it is next
  void expect(std::string_view text);  // or fails
  void expect_end();
  std::string identifier();              // [a-z_][a-z0-9_]*
  std::string string();                  // "..." as quote() writes it
  std::string_view until(char stop);     // up to `stop` or the end, which stays
  std::string_view word();               // up to the comma or bracket that ends a dimension, which stays
  int64_t integer();                     // signed decimal
  uint64_t natural();                    // unsigned decimal
  int index(char letter, size_t count);  // letter and number below `count`, e.g. v7
  AttributeValue attribute();

 private:
  template <class T>
  T number(int base = 10);

  std::string_view rest_;
  std::string error_;
};

}  // namespace invar::plan
