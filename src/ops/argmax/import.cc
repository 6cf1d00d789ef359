#include "ir/rules.h"

namespace invar::ir {
namespace {

Status argmax(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis", "keepdims", "select_last_index"}));
  INVAR_CHECK_OK(node.only("select_last_index", int64_t{0}));
  INVAR_TRY(int64_t wanted, node.i("axis", 0));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  if (axis + 1 != static_cast<int64_t>(node.shape(0).size()))
    return not_covered("axis " + std::to_string(wanted) + "; covered is the last");
  INVAR_TRY(int64_t keep, node.i("keepdims", 1));
  INVAR_TRY(Value out, node.make<ArgmaxOp>(node.in(0)));
  if (!keep) return node.replace(out);
  Shape kept = shape_of(out.getType());
  kept.push_back(Extent::of(1));
  INVAR_TRY(Value shaped, node.make<ReshapeOp>(out, {}, tensor_of(kept, node.build().getI64Type())));
  return node.replace(shaped);
}

}  // namespace

LogicalResult ArgmaxOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                         SmallVectorImpl<Type>& out) {
  Shape shape = shape_of(op.getX().getType());
  if (shape.empty()) return mismatch(loc, "a scalar has no last axis");
  shape.pop_back();
  out.push_back(tensor_of(shape, IntegerType::get(context, 64)));
  return success();
}

void import_argmax(Rooms& rooms) {
  rooms.on("ArgMax", 13, argmax);
}

}  // namespace invar::ir
