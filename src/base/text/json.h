// A strict JSON parser (RFC 8259). It keeps duplicate members and the spelling of numbers, so that
// findings can name them. Errors have line and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::json {

struct Member;

struct Value {
  enum Kind { null, boolean, number, string, array, object } kind = null;
  std::string text;  // "true", "false", a number's literal, or a string's content in UTF-8
  std::vector<Value> items;
  std::vector<Member> members;  // in order
};

struct Member {
  std::string first;
  Value second;
};

constexpr std::string_view name_of(Value::Kind k) {
  constexpr std::string_view names[] = {"null", "a boolean", "a number", "a string", "a list", "an object"};
  return names[k];
}

// The values of one text, those in lists and objects included: two bytes of text can be a value of
// a hundred bytes here.
inline constexpr size_t kMostValues = size_t{1} << 22;
// Errors: bad_input "NAME:LINE:COLUMN: not JSON: why", or more values than kMostValues. Columns
// count bytes from 1.
Result<Value> parse(std::string_view text, std::string_view name);

// The JSON of a value without white space; numbers as they were written.
std::string compact(const Value&);

// s as a JSON string with the fewest escapes (spec/receipt.md receipt.4); ill-formed UTF-8 becomes
// U+FFFD.
std::string quote(std::string_view s);

// The start of a long text, whole characters, for messages.
std::string brief(std::string_view s);

}  // namespace invar::json
