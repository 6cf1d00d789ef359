// How torch's own functions say an operation: the rooms' torch.cc, each of which registers the
// operations of its room.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/attributes.h"
#include "base/status.h"
#include "compiler/dialects/tensor_types.h"
#include "compiler/emit/torch/python_text.h"

namespace invar::compiler {

// A call of an operation. Texts of it have fields for operands and dimensions
// (dialects/torch/template.h); absent attributes have the default of the room's ops.toml.
struct TorchCall {
  struct Type {
    DType dtype;
    Shape shape;
  };
  std::string op;
  Attributes attributes;
  std::vector<Type> types;            // of the operands
  Type type;                          // of the result
  std::vector<std::string> operands;  // their texts

  // An operand. Kernels widen narrow ones as they read them, torch is told to.
  std::string operator[](size_t operand) const;
  size_t size() const { return operands.size(); }
  std::vector<std::string> from(size_t operand) const;  // this one and those behind it
  bool widens(size_t operand) const;

  int64_t i(std::string_view name) const;
  float f(std::string_view name) const;
  // The list, or if it is absent or empty `count` times its default.
  std::vector<int64_t> ints(std::string_view name, size_t count = 0) const;
  std::string text(std::string_view name) const;     // of an attribute
  std::string keywords() const;                      // all attributes: ", axis=1, keepdims=0"
  std::string keyword(std::string_view name) const;  // one of them; "" if it is absent

  size_t rank(size_t operand = 0) const { return types[operand].shape.size(); }
  const Shape& shape_of(size_t operand) const { return types[operand].shape; }
  std::string dtype() const { return std::string(python::dtype(type.dtype)); }
  std::string shape() const;  // of the result, a tuple
  bool is_real() const { return type.dtype == DType::f32 || type.dtype == DType::f64; }
  Error refused(const std::string& why) const;
};

// A dimension as a field, or a number.
std::string torch_text(const Dim&);
std::string torch_text(const Shape&);  // a tuple

// A text in which {0}, {1}, ... are operands, {*} is all of them, {shape} and {dtype} the result's,
// {NAME} an attribute, {NAME=} and {**} keywords of given attributes; or a function that makes one.
using TorchFormat = const char*;
using TorchFunction = std::function<Result<std::string>(const TorchCall&)>;
using TorchSpelling = std::variant<TorchFormat, TorchFunction>;

Result<std::string> spelled(const TorchSpelling&, const TorchCall&);
// The same on signed integers of the same bits, because torch moves unsigned ones of 16 bits and
// more and does little else with them.
Result<std::string> spelled_as_signed(const TorchSpelling&, const TorchCall&);

class TorchSpellings {
 public:
  void add(std::string_view op, TorchSpelling spelling) { all_.emplace(op, std::move(spelling)); }
  // not_covered: torch has no such operation, or not for these types.
  Result<std::string> spell(const TorchCall&) const;
  static const TorchSpellings& all();

 private:
  std::map<std::string, TorchSpelling, std::less<>> all_;
};

// "a" + 1 + std::string("b") as text.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string all;
  const auto add = [&all](const auto& part) {
    if constexpr (std::is_same_v<std::decay_t<decltype(part)>, bool>)
      all += part ? "True" : "False";
    else if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>)
      all += std::to_string(part);
    else
      all += part;
  };
  (add(parts), ...);
  return all;
}

}  // namespace invar::compiler
