#include "ir/rules.h"

namespace invar::ir {
namespace {

// Values are picked by the indices: one sort for both results.
Status topk(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis", "largest", "sorted"}, 2));
  INVAR_TRY(std::vector<int64_t> k, node.constants(1));
  if (k.size() != 1) return bad_input("operand 1 is not one number");
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t largest, node.i("largest", 1));
  INVAR_TRY(Value index, node.make<TopkOp>(node.in(0), {node.attr("axis", axis), node.attr("k", k[0]),
                                                        node.attr("largest", int64_t{largest != 0})}));
  INVAR_TRY(Value values, node.make<GatherElementsOp>({node.in(0), index}, node.attr("axis", axis)));
  node.replace(1, index);
  return node.replace(values);
}

}  // namespace

LogicalResult TopkOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type>& out) {
  Shape shape = shape_of(op.getX().getType());
  int64_t axis = op.getAxis(), k = op.getK();
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(shape.size()));
  if (!shape[axis].constant()) return refuse(loc, "covered is an axis of constant length");
  if (k < 0 || k > shape[axis].value)
    return mismatch(loc, "k = " + std::to_string(k) + " of " + text_of(shape[axis]) + " elements");
  shape[axis] = Extent::of(k);
  out.push_back(tensor_of(shape, IntegerType::get(context, 64)));
  return success();
}

// Before opset 10 k was an attribute.
void import_topk(Rooms& rooms) {
  rooms.on("TopK", 10, topk);
}

}  // namespace invar::ir
