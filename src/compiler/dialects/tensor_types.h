// Shapes with symbolic dimensions, as the IR's tensor types carry them, and element types.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "shape/dim_expr.h"
#include "base/status.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

namespace invar::compiler {

// A dimension: a constant, a named symbol or the text of a polynomial in such, or (dynamic and no name) unknown.
struct Extent {
  int64_t value = mlir::ShapedType::kDynamic;
  std::string name;
  static Extent of(int64_t v) { return {v, ""}; }
  static Extent of(const Polynomial& p) {
    const std::optional<int64_t> v = p.constant();
    return v ? of(*v) : Extent{mlir::ShapedType::kDynamic, p.text()};
  }
  bool constant() const { return value != mlir::ShapedType::kDynamic; }
  bool known() const { return constant() || !name.empty(); }
  bool operator==(const Extent&) const = default;
};
using Shape = std::vector<Extent>;

Shape shape_of(mlir::Type ranked_tensor);
mlir::RankedTensorType tensor_of(const Shape&, mlir::Type element);
std::string text_of(const Extent&);
std::string text_of(const Shape&);
std::string text_of_type(mlir::Type);

// NumPy broadcasting; nothing where it cannot be shown that the shapes fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// Equal and known.
bool same(const Extent& a, const Extent& b);
// The same, or equal for some sizes above 0 as far as can be seen: operations require it in each call.
bool may_be_equal(const Extent& a, const Extent& b);
bool may_be_equal(const Shape& a, const Shape& b);
bool may_be_zero(const Polynomial&);
// What two dimensions broadcast to, if they do: in other calls, one of them does not broadcast to that. Nothing where it is too long.
std::optional<Polynomial> broadcast(const Polynomial& a, const Polynomial& b);
// Whether two are equal for all sizes, those of 0 and 1 among them, as far as can be seen.
bool always_equal(const Polynomial& a, const Polynomial& b);
// Broadcasting in which dimensions that may be equal are asked of each call.
std::optional<Shape> fitted(const Shape& a, const Shape& b);
// Nothing where a dimension is unknown, or there are more elements than can be counted.
std::optional<Polynomial> polynomial_of(const Extent&);
std::optional<Polynomial> count_of(const Shape&);

std::optional<DType> dtype_of(mlir::Type element);
mlir::Type type_of(mlir::MLIRContext*, DType);
// TensorProto.DataType; null where ONNX has no such code.
mlir::Type onnx_type(mlir::MLIRContext*, int32_t code);

// For the type inference of rooms: an operand pair that does not fit is the model's mistake; what is merely not
// covered is refused. Both fail.
mlir::LogicalResult mismatch(std::optional<mlir::Location>, const llvm::Twine& what);
mlir::LogicalResult refuse(std::optional<mlir::Location>, const llvm::Twine& what);
// Shapes that must be equal and are not: bad input where no sizes make them equal, else not covered, as where they differ in leading
// dimensions of 1 alone.
Error unequal(const Shape&, const Shape&, const std::string& message);
// Shapes that do not fit, as `message` says: bad input where all sizes are known.
Error misfit(std::initializer_list<Shape>, const std::string& message);
// A dimension's name and what it must be, where two that must be equal are not the same; nothing where neither is a name.
struct Forced {
  std::string name, size;
};
std::optional<Forced> forced_by(const Extent& a, const Extent& b);
// Of a number of elements that is kept: the one name that stands in one count alone.
std::optional<Forced> forced_by(const Shape& from, const Shape& to);
// Adds it to what is said, for another attempt (settled.cc).
mlir::LogicalResult noted(mlir::InFlightDiagnostic, const std::optional<Forced>&);
// Two dimensions that must be equal and are not the same: the model's mistake where both are constants, else refused.
mlir::LogicalResult differ(std::optional<mlir::Location>, const Extent& a, const Extent& b,
                           const llvm::Twine& what);
inline constexpr char kRefusal[] = "not covered: ";  // how refuse() marks its message

}  // namespace invar::compiler
