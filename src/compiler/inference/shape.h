// Shapes of symbolic dimensions. Nothing here knows MLIR.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "shape/dim_expr.h"

namespace invar {

// Words about dimensions, which know the symbols that they name. An error made of them carries the
// symbols, so that nobody looks for them in a message. They do not convert to a plain string.
struct DimText {
  DimText(std::string text = "") : text(std::move(text)) {}
  DimText(const char* text) : text(text) {}
  friend DimText operator+(DimText a, const DimText& b) {
    a.text += b.text;
    a.symbols.insert(a.symbols.end(), b.symbols.begin(), b.symbols.end());
    return a;
  }
  std::string text;
  std::vector<std::string> symbols;
};

DimText text_of(const DimExpr&);

// not_constant where the words name symbols, which are the subject: a value that decides one can be
// given when compiling, if there is one. A template, so that plain words do not convert to DimText.
template <std::same_as<DimText> T>
Error not_covered(const T& why) {
  if (why.symbols.empty()) return not_covered(why.text);
  std::string names;
  for (const std::string& name : why.symbols) names += (names.empty() ? "" : " ") + name;
  return {Code::not_covered, why.text, {}, ErrorKind::not_constant, std::move(names)};
}
template <std::same_as<DimText> T>
Error bad_input(const T& why) {
  return bad_input(why.text);
}

}  // namespace invar

namespace invar::compiler {

// A dimension: a constant, an expression of symbols, or unknown.
struct Dim {
  static constexpr int64_t kNoConstant = INT64_MIN;  // what MLIR has there, too
  int64_t value = kNoConstant;
  DimExpr expr{};  // of symbols; 0 if the dimension is a constant or unknown
  static Dim of(int64_t v) { return {v}; }
  static Dim of(const DimExpr& p) {
    const std::optional<int64_t> v = p.constant();
    return v ? of(*v) : Dim{kNoConstant, p};
  }
  bool constant() const { return value != kNoConstant; }
  bool known() const { return constant() || !expr.constant(); }
  bool operator==(const Dim&) const = default;
};
using Shape = std::vector<Dim>;

DimText text_of(const Dim&);
DimText text_of(const Shape&);

// NumPy broadcasting. Nothing if the shapes are not known to broadcast for all sizes.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// NumPy broadcasting in which dimensions that may be equal are taken to be. The kernel checks them
// at run time.
std::optional<Shape> broadcast_if_maybe_equal(const Shape& a, const Shape& b);
// The size that two dimensions broadcast to, for all sizes at which they do: max(a, b), but 0 if
// one is 0. Nothing if the expression exceeds the size limits.
std::optional<DimExpr> broadcast(const DimExpr& a, const DimExpr& b);

// Both are known and have the same expression.
bool known_equal(const Dim& a, const Dim& b);
// Equal, or not provably different for all sizes above 0. Operations check such sizes at run time.
bool may_be_equal(const Dim& a, const Dim& b);
bool may_be_equal(const Shape& a, const Shape& b);
bool may_be_zero(const DimExpr&);
// Provably equal for all sizes, including 0 and 1.
bool always_equal(const DimExpr& a, const DimExpr& b);

// Nothing if the dimension is unknown.
std::optional<DimExpr> dim_expr_of(const Dim&);
// Nothing if a dimension is unknown or the count exceeds the size limits.
std::optional<DimExpr> element_count(const Shape&);

}  // namespace invar::compiler
