#include "ops/softmax/import.h"

#include "ir/compose.h"

namespace invar::ir {
namespace {

template <class Op>
Status softmax(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis"}));
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  INVAR_TRY(Value out, element_of(node.in(0)).isF64()
                           ? wide_softmax(node, node.in(0), axis, std::is_same_v<Op, LogSoftmaxOp>)
                           : node.make<Op>(node.in(0), node.attr("axis", axis)));
  return node.replace(out);
}

LogicalResult infer(std::optional<Location> loc, Value x, int64_t axis, SmallVectorImpl<Type>& out) {
  Shape shape = shape_of(x.getType());
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(shape.size()));
  if (shape[axis] == Extent::of(0)) return mismatch(loc, "an axis without elements");
  out.push_back(x.getType());
  return success();
}

}  // namespace

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                          SmallVectorImpl<Type>& out) {
  return infer(loc, op.getX(), op.getAxis(), out);
}
LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                             SmallVectorImpl<Type>& out) {
  return infer(loc, op.getX(), op.getAxis(), out);
}

// Before opset 13 the operations flattened their operand first.
void import_softmax(Rooms& rooms) {
  rooms.on("Softmax", 13, softmax<SoftmaxOp>);
  rooms.on("LogSoftmax", 13, softmax<LogSoftmaxOp>);
  rooms.on("NegativeLogLikelihoodLoss", 12, negative_log_likelihood);
  rooms.on("SoftmaxCrossEntropyLoss", 12, cross_entropy);
}

}  // namespace invar::ir
