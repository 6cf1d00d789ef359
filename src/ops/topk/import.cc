#include "compiler/lowering/builders/argsort.h"
#include "compiler/lowering/builders/compact.h"

namespace invar::compiler {
namespace {

// Values are picked by the indices: one sort for both results. A k that is not known: of all in their order the first.
Status topk(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis", "largest", "sorted"}, 2));
  INVAR_TRY(const std::vector<Polynomial> count, node.sizes(1));
  if (count.size() != 1) return bad_input("operand 1 is not one number");
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t largest, node.i("largest", 1));
  const std::optional<int64_t> k = count[0].constant();
  INVAR_TRY(Value index, ordered_places(node, node.in(0), axis, k, largest != 0));
  if (!k) {
    INVAR_TRY(index, part(node, index, static_cast<size_t>(axis), 0, Extent::of(count[0])));
  }
  INVAR_TRY(Value values, node.make<GatherElementsOp>({node.in(0), index}, node.attr("axis", axis)));
  node.replace(1, index, /*stays_wide=*/true);
  return node.replace(values);
}

}  // namespace

LogicalResult TopkOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type>& out) {
  Shape shape = shape_of(op.getX().getType());
  const int64_t axis = op.getAxis();
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(shape.size()));
  if (op.getK()) {  // an open axis is asked when the program runs
    const auto k = static_cast<int64_t>(*op.getK());
    if (k < 0 || (shape[axis].constant() && k > shape[axis].value))
      return mismatch(loc, "k = " + std::to_string(k) + " of " + text_of(shape[axis]) + " elements");
    shape[axis] = Extent::of(k);
  }
  out.push_back(tensor_of(shape, IntegerType::get(context, 64)));
  return success();
}

// Before opset 10 k was an attribute.
void import_topk(Rooms& rooms) {
  rooms.on("TopK", 10, topk, Widens::ordered);
}

}  // namespace invar::compiler
