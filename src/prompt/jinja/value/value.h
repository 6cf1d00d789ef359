// The values of a template: those of Python that JSON and Jinja make. Immutable, but for
// namespaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/text/json.h"

namespace invar::prompt::jinja {

// Bytes that values of this thread hold: what bounds the memory of a template.
size_t& live_bytes();

// The steps that the template of this thread has left: what bounds its time. Everything that walks
// values or text charges them: a step is an element, so many bytes that are read one by one, or so
// many that are copied or compared at once.
struct Meter {
  size_t left = SIZE_MAX;
  bool exhausted = false;
};
Meter& meter();
inline constexpr size_t kBytesRead = 16, kBytesCopied = 256;
inline constexpr size_t kNewValue = 4;  // steps of making a text or a list
// False: fewer steps are left, and whatever is made from now on is of no use. Whoever may make much
// ends then; Interpreter::spend says why.
bool charge(size_t steps);

class Counted {
 public:
  explicit Counted(size_t bytes) : bytes_(bytes) { live_bytes() += bytes_; }
  Counted(const Counted&) = delete;
  ~Counted() { live_bytes() -= bytes_; }

 private:
  const size_t bytes_;
};

struct Sequence;
struct Dict;
struct Namespace;
struct Loop;
struct Callable;

struct Undefined {
  std::shared_ptr<const std::string> why;  // what a use of it is answered with
};
struct None {};
struct Text {
  const std::string text;  // UTF-8
  const Counted counted{text.size() + sizeof(std::string)};
};
struct String {
  std::shared_ptr<const Text> text;
  bool markup = false;  // of the filters safe and escape
};

struct Value {
  std::variant<Undefined, None, bool, int64_t, double, String, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, Namespace*, std::shared_ptr<Loop>,
               std::shared_ptr<const Callable>>
      v;

  bool undefined() const { return std::holds_alternative<Undefined>(v); }
  bool none() const { return std::holds_alternative<None>(v); }
  const std::string* string() const {
    const String* s = std::get_if<String>(&v);
    return s ? &s->text->text : nullptr;
  }
  bool markup() const {
    const String* s = std::get_if<String>(&v);
    return s && s->markup;
  }
  const Sequence* sequence() const { return held<Sequence>(); }
  const Dict* dict() const { return held<Dict>(); }
  // The value of integers and booleans.
  std::optional<int64_t> integer() const {
    if (const bool* b = std::get_if<bool>(&v)) return *b;
    if (const int64_t* i = std::get_if<int64_t>(&v)) return *i;
    return std::nullopt;
  }
  std::optional<double> number() const {
    if (const double* d = std::get_if<double>(&v)) return *d;
    if (const auto i = integer()) return static_cast<double>(*i);
    return std::nullopt;
  }

 private:
  template <class T>
  const T* held() const {
    const auto* p = std::get_if<std::shared_ptr<const T>>(&v);
    return p ? p->get() : nullptr;
  }
};

// A list, or what Python makes of one. A generator gives its items once.
struct Sequence {
  enum Kind { list, tuple, keys, values, items, range, generator } kind = list;
  std::vector<Value> elements;
  const int depth;
  const Counted counted;
  mutable bool consumed = false;
  Sequence(Kind, std::vector<Value>);
};

struct Dict {
  std::vector<std::pair<Value, Value>> members;  // in order of insertion
  const int depth;
  const Counted counted;
  explicit Dict(std::vector<std::pair<Value, Value>>);  // keys are distinct
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

 private:
  std::unordered_map<std::string_view, size_t> by_name_;
};

// Lives until the rendering ends: it may hold itself.
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};

Value undefined(std::string why);
Value text(std::string s, bool markup = false);
Value sequence(Sequence::Kind, std::vector<Value>);
Value list(std::vector<Value>);
// The last value of equal keys counts, at the place of the first.
Value dict(std::vector<std::pair<Value, Value>>);
// JSON as Python's json.loads reads it. Errors: a number that neither 64-bit integer nor binary64
// holds, without place.
Result<Value> from_json(const invar::json::Value&);

int depth_of(const Value&);  // 0: no container
// chat.5: the value, or an error where it nests too deeply, in a template or in a chat.
Result<Value> within_levels(Value);
bool truth(const Value&);
bool equal(const Value&, const Value&);  // Python's ==; charges, as hashable and less do
bool hashable(const Value&);
// Python's < of numbers, strings and sequences; absent: a TypeError.
std::optional<bool> less(const Value&, const Value&);
std::string_view type_name(const Value&);  // Python's
std::string number_text(double);           // Python's repr
// str() and repr(). Errors: what has no text that is the same in every run, a text beyond
// kLongestText, without place.
Result<std::string> str(const Value&);
Result<std::string> repr(const Value&);

inline constexpr size_t kLongestText = size_t{64} << 20;
// The error for what makes a longer text.
Error too_long(const std::string& what);

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ", key_separator = ": ";
};
// Python's json.dumps.
Result<std::string> to_json(const Value&, const JsonStyle&);

}  // namespace invar::prompt::jinja
