// The rules by which the type of a result follows from operands and attributes. ops.toml names the
// rule of each operation (tools/ops/generate.py). A rule named "own NAME" is infer_NAME() of the
// room's import.cc. A rule refuses by bad_input() if the operands contradict each other: the model
// is wrong; by not_covered() if they may be right, but the operation does not support them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/status.h"
#include "compiler/inference/shape.h"

namespace invar::ops {
struct IntegerList;
}

namespace invar::compiler {

struct ValueType {
  DType dtype;
  Shape shape;
  bool operator==(const ValueType&) const = default;
};

// A symbol of an input's dimension that must equal an expression (spec/onnx.md onnx.25).
struct Constraint {
  std::string symbol;
  DimExpr size;
};

// The call of an operation whose result's type is inferred.
class InferredCall {
 public:
  InferredCall(std::vector<ValueType> operands, const Attributes& given)
      : attributes(given), operands_(std::move(operands)) {}
  size_t size() const { return operands_.size(); }
  bool has(size_t operand) const { return operand < operands_.size(); }  // optional ones are last
  const ValueType& operator[](size_t operand) const { return operands_[operand]; }
  std::optional<int64_t> integer(std::string_view attribute) const;  // nothing if it is absent
  // Two dimensions that must be equal are not known to be: bad_input if both are constants, else
  // not_covered with the constraint that makes them equal.
  Error unequal_dims(const Dim& a, const Dim& b, const DimText& what);

  const Attributes& attributes;
  std::optional<Constraint> constraint{};  // out

 private:
  std::vector<ValueType> operands_;
};

using ResultRule = Result<ValueType> (*)(InferredCall&);
// Null if the type of the operation's result does not follow from its operands.
ResultRule result_rule(std::string_view op);

// The named rules.
Result<ValueType> infer_like(const InferredCall&, size_t operand);
// The operands broadcast. The element type is that of the last one, widened; the first of three is
// a condition.
Result<ValueType> infer_broadcast(const InferredCall&);
// Ascending axes of operand 0 become 1, or without the attribute `keepdims` are dropped.
Result<ValueType> infer_reduced(const InferredCall&, const ops::IntegerList& axes);
// The type of the operand, which has elements along the axis.
Result<ValueType> infer_along_axis(const InferredCall&, int64_t axis, size_t operand = 0);
// A normalization of x by a scale of its innermost dimensions (and a bias), and the gradients of x
// and of the scale, which has the dimensions of x from `axis` on.
Result<ValueType> infer_norm(InferredCall&);
Result<ValueType> infer_norm_backward(InferredCall&);
Result<ValueType> infer_norm_backward_weight(const InferredCall&, int64_t axis);
// The same with elements of another type.
Result<ValueType> with_elements(Result<ValueType>, DType);

// Parts of rules.
DType widened(DType);  // f32 of bf16 and f16
Status check_axis(int64_t axis, const Shape&);

// The same decisions for lowering rules. Shapes that must be equal and are not: not_covered if they
// are equal for some sizes, or up to leading dimensions of 1; else bad_input.
Error unequal_shapes(const Shape&, const Shape&, const DimText& message);
// Shapes that do not fit together: bad_input if all dimensions are constants, else not_covered.
Error shape_error(std::initializer_list<Shape>, const DimText& message);

// The constraint that makes two dimensions equal; nothing if neither is a single symbol.
std::optional<Constraint> equality_constraint(const Dim& a, const Dim& b);
// The constraint that makes two element counts equal: on a symbol that divides the count of `from`.
std::optional<Constraint> equality_constraint(const Shape& from, const Shape& to);

}  // namespace invar::compiler
