#include "ir/rules.h"

namespace invar::ir {
namespace {

Status softmax(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis"}));
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  if (axis + 1 != static_cast<int64_t>(node.shape(0).size()))
    return not_covered("axis " + std::to_string(wanted) + "; covered is the last");
  INVAR_TRY(Value out, node.make<SoftmaxOp>(node.in(0)));
  return node.replace(out);
}

}  // namespace

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                          SmallVectorImpl<Type>& out) {
  if (shape_of(op.getX().getType()).empty()) return mismatch(loc, "a scalar has no last axis");
  out.push_back(op.getX().getType());
  return success();
}

// Before opset 13 the operation flattened its operand first.
void import_softmax(Rooms& rooms) {
  rooms.on("Softmax", 13, softmax);
}

}  // namespace invar::ir
