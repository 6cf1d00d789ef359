// Shapes with symbolic dimensions, as the encodings of tensor types carry them, and element types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "shape/dim_expr.h"

namespace invar {
inline llvm::hash_code hash_value(const std::vector<std::optional<DimExpr>>& dims) {
  llvm::hash_code all(dims.size());
  for (const std::optional<DimExpr>& dim : dims) all = llvm::hash_combine(all, dim ? dim->hash() : 0);
  return all;
}
}  // namespace invar

namespace invar::compiler {

// A dimension: a constant, an expression of symbols, or unknown.
struct Dim {
  int64_t value = mlir::ShapedType::kDynamic;
  DimExpr expr{};  // of symbols; 0 if the dimension is a constant or unknown
  static Dim of(int64_t v) { return {v}; }
  static Dim of(const DimExpr& p) {
    const std::optional<int64_t> v = p.constant();
    return v ? of(*v) : Dim{mlir::ShapedType::kDynamic, p};
  }
  bool constant() const { return value != mlir::ShapedType::kDynamic; }
  bool known() const { return constant() || !expr.constant(); }
  bool operator==(const Dim&) const = default;
};
using Shape = std::vector<Dim>;

// The dimensions of a DimsAttr. nullopt: none, because the size is a constant or unknown.
using DimList = std::vector<std::optional<DimExpr>>;

Shape shape_of(mlir::Type ranked_tensor);
mlir::RankedTensorType tensor_of(const Shape&, mlir::Type element);
std::string text_of(const Dim&);
std::string text_of(const Shape&);
std::string text_of_type(mlir::Type);

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

std::optional<DType> dtype_of(mlir::Type element);
mlir::Type type_of(mlir::MLIRContext*, DType);
// The element type of a TensorProto.DataType code; null if ONNX has no such code.
mlir::Type onnx_type(mlir::MLIRContext*, int32_t code);

}  // namespace invar::compiler
