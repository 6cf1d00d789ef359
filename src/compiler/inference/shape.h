// Shapes of symbolic dimensions. Nothing here knows MLIR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shape/dim_expr.h"

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

std::string text_of(const Dim&);
std::string text_of(const Shape&);

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
