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

void import_fixed(RuleRegistry&) {}

}  // namespace invar::compiler
