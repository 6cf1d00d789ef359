// Errors as values. Every message is one line that says what, where and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace invar {

// The process exit codes of the command line (docs/reference/cli.md); every error carries one.
enum class Code {
  failed = 1,       // a verification ran and did not hold
  bad_input = 2,    // usage, or a file that is not what it should be
  not_covered = 3,  // outside the guarantee: refused by name
  internal = 70,    // a defect of Invar
};

// The kind of an error that a caller does something about. Words of a message are for people alone.
// Whoever refuses sets it.
enum class ErrorKind : uint8_t {
  other,
  not_json,      // a text that is not JSON
  no_model,      // a name of no model; `subject` is the name
  index,         // an index that names no element
  not_constant,  // a value that is to be given when compiling
};

struct Error {
  Code code;
  std::string message;
  std::vector<std::string> items = {};  // details, if the message covers several things
  ErrorKind kind = ErrorKind::other;
  std::string subject = {};

  // The same error, with more words around its message.
  Error around(const std::string& before, const std::string& after = "") const {
    Error more = *this;
    more.message = before + message + after;
    return more;
  }
};

inline Error bad_input(std::string message) {
  return {Code::bad_input, std::move(message)};
}
inline Error not_covered(std::string message) {
  return {Code::not_covered, std::move(message)};
}
// "model NAME: what"
inline Error no_model(const std::string& name, const std::string& what, Code code = Code::bad_input) {
  return {code, "model " + name + ": " + what, {}, ErrorKind::no_model, name};
}

// A T or an Error. Result<void> is Status.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return v_.index() == 0; }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T&& operator*() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  const Error& error() const { return std::get<1>(v_); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};
using Status = Result<void>;

}  // namespace invar

#define INVAR_CAT_(a, b) a##b
#define INVAR_CAT(a, b) INVAR_CAT_(a, b)
// INVAR_TRY(auto x, f());   x = *f(), or return its error.
#define INVAR_TRY(decl, expr)                                               \
  auto INVAR_CAT(try_, __LINE__) = (expr);                                  \
  if (!INVAR_CAT(try_, __LINE__)) return INVAR_CAT(try_, __LINE__).error(); \
  decl = *std::move(INVAR_CAT(try_, __LINE__))
// INVAR_CHECK_OK(f());   return its error, if any; an else after it is an error of the compiler's.
#define INVAR_CHECK_OK(expr)            \
  if (auto status_ = (expr); status_) { \
  } else                                \
    return status_.error()
