// JSON (RFC 8259): a strict parser, values to look into and to build, and a writer. The parser
// keeps duplicate members and the spelling of numbers, so that findings can name them. Errors have
// line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace invar::json {

struct Member;

// Members stay in the order in which they came, and are few: a look-up visits them in turn.
struct Value {
  enum Kind { null, boolean, number, string, array, object } kind = null;
  std::string text;  // "true", "false", a number's literal, or a string's content in UTF-8
  std::vector<Value> items;
  std::vector<Member> members;

  Value();
  Value(std::nullptr_t) : Value() {}
  Value(Kind);  // an empty one
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(std::string text);
  Value(std::initializer_list<Member>);  // an object
  Value(std::vector<Value>);             // an array
  template <class T>
  requires std::is_arithmetic_v<T> Value(T value);  // null for infinity and NaN, which JSON does not have
  template <class T>
  Value(const std::vector<T>& list);
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  bool is_null() const { return kind == null; }
  bool is_boolean() const { return kind == boolean; }
  bool is_number() const { return kind == number; }
  bool is_string() const { return kind == string; }
  bool is_array() const { return kind == array; }
  bool is_object() const { return kind == object; }
  bool is_structured() const { return is_array() || is_object(); }
  bool is_integer() const;  // without fraction and exponent, of int64_t or uint64_t
  bool is_unsigned() const;
  bool is_true() const { return kind == boolean && text == "true"; }
  int64_t to_int64() const;  // of an integer, modulo 2^64
  uint64_t to_uint64() const { return static_cast<uint64_t>(to_int64()); }
  double to_double() const;  // the nearest, infinity beyond; 0 of what is no number

  // The number of elements of an array or object.
  size_t size() const;
  bool empty() const { return size() == 0; }

  // A member: the first of this name, or null, a value that is null, a new one.
  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const Value& get(std::string_view name) const;
  Value& operator[](std::string_view name);
  Value& operator[](int) = delete;
  void erase(std::string_view name);
  Value& update(const Value& object);  // with its members, in the place of those of the same names
  // Another item.
  Value& add(Value item);

  // Numbers by value, objects in any order of their members.
  friend bool operator==(const Value& a, const Value& b) { return equal(a, b); }

 private:
  static bool equal(const Value&, const Value&);
};

struct Member {
  std::string first;
  Value second;
};

std::string spelled(int64_t);
std::string spelled(uint64_t);
// The fewest digits that round to the number, in the form of Python's float.__repr__ up to 1e15.
std::string spelled(double);

template <class T>
requires std::is_arithmetic_v<T> Value::Value(T value) : Value() {
  if constexpr (std::is_same_v<T, bool>) {
    kind = boolean, text = value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    if (value - value == 0) kind = number, text = spelled(static_cast<double>(value));
  } else {
    kind = number,
    text = spelled(static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
  }
}

template <class T>
Value::Value(const std::vector<T>& list) : Value(array) {
  items.reserve(list.size());
  for (const auto& item : list) items.emplace_back(static_cast<const T&>(item));
}

inline Value list(std::vector<Value> items) {
  return Value(std::move(items));
}

constexpr std::string_view name_of(Value::Kind k) {
  constexpr std::string_view names[] = {"null", "a boolean", "a number", "a string", "a list", "an object"};
  return names[k];
}

// The place and the reason where a text is not accepted.
struct Failure {
  enum Why { syntax, depth, count } why = syntax;
  size_t byte = 0;  // how many bytes were read, with those that are wrong
};

// The values of one text, those in lists and objects included: two bytes of text can be a value of
// a hundred bytes here.
inline constexpr size_t kMostValues = size_t{1} << 22;
// Lists and objects within one another: whatever walks a value may recurse.
inline constexpr int kMostLevels = 512;
// Errors: bad_input "NAME:LINE:COLUMN: not JSON: why", or more values than kMostValues. Columns
// count bytes from 1.
Result<Value> parse(std::string_view text, std::string_view name, Failure* = nullptr);

// The bytes of a mark of byte order at the start, which most programs skip.
inline size_t mark_length(std::string_view text) {
  return text.starts_with("\xef\xbb\xbf") ? 3 : 0;
}

// Reads as most programs do: a byte order mark is skipped, of members of one name the last counts,
// and numbers are spelled as Invar writes them. Those beyond binary64 are an error.
enum class Order { by_name, as_written };
Result<Value> read(std::string_view text, std::string_view name, Order = Order::by_name);
Value read_or_null(std::string_view text, Order = Order::by_name);

// The steps of read(). False: a number is beyond binary64. `spell`: numbers as Invar writes them.
bool normalize(Value&, Order, bool spell = true);
// The first name that an object within has twice, or null.
const std::string* repeated_name(const Value&);
// The members of all objects within by name.
Value sorted(Value);

// The JSON of a value without white space; numbers as they are spelled.
std::string compact(const Value&);

// The same for any bytes: U+FFFD for each maximal subpart of ill-formed UTF-8. `indent`: the spaces
// of a level, each item on a line of its own; below 0 without white space. `ascii`: escapes what
// is not.
struct Form {
  int indent = -1;
  bool ascii = false;
};
std::string dump(const Value&, Form = {});

// s as a JSON string with the fewest escapes (spec/receipt.md receipt.4); ill-formed UTF-8 becomes
// U+FFFD.
std::string quote(std::string_view s);

// The start of a long text, whole characters, for messages.
std::string brief(std::string_view s);

}  // namespace invar::json
