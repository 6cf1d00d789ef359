// Type inference of fixed-point sums. No ONNX node becomes one.
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
namespace {

Type i64_of(MLIRContext* context, const Shape& shape) {
  return tensor_of(shape, IntegerType::get(context, 64));
}

}  // namespace

LogicalResult FixedSumOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                           SmallVectorImpl<Type>& out) {
  Shape shape = shape_of(op.getX().getType());
  if (shape.empty()) return mismatch(loc, "x has no dimension of units");
  shape.erase(shape.begin());
  out.push_back(i64_of(context, shape));
  return success();
}
LogicalResult FixedMagnitudeOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc,
                                                 Adaptor op, SmallVectorImpl<Type>& out) {
  if (shape_of(op.getX().getType()).empty()) return mismatch(loc, "x has no dimension of units");
  out.push_back(i64_of(context, {}));
  return success();
}
LogicalResult FixedValueOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                             SmallVectorImpl<Type>& out) {
  if (!shape_of(op.getMagnitude().getType()).empty()) return mismatch(loc, "the magnitude is not one number");
  out.push_back(tensor_of(shape_of(op.getSum().getType()), Float32Type::get(context)));
  return success();
}

LogicalResult FixedMatmulOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                              SmallVectorImpl<Type>& out) {
  const Shape a = shape_of(op.getA().getType()), b = shape_of(op.getB().getType());
  if (a.size() != 3 || b.size() != 3) return mismatch(loc, "a and b are not [units, T, M] and [units, T, N]");
  if (a[0] != b[0] || a[1] != b[1])
    return mismatch(loc, "a and b have other units or another length of them");
  if (!a[2].constant() || !b[2].constant()) return mismatch(loc, "the result has sizes that are not known");
  out.push_back(i64_of(context, {Dim::of(a[2].value * b[2].value + 1)}));
  return success();
}

void import_fixed(RuleRegistry&) {}

}  // namespace invar::compiler
