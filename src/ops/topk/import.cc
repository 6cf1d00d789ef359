#include "ir/compose.h"

namespace invar::ir {
namespace {

// Places of the k first of integers of `bits` bits: sorted by pieces of 24 bits, which f32 holds, from the lowest. Each sort
// keeps the order of equals, so the last decides and those before it decide among its equals.
Result<Value> places_of_integers(Node& node, Value x, int64_t bits, int64_t axis, int64_t k,
                                 int64_t largest) {
  constexpr int64_t kPiece = 24;
  const Shape shape = shape_of(x.getType());
  const Type type = element_of(x);
  const Extent length = shape[static_cast<size_t>(axis)];
  if (!length.constant()) return not_covered("covered is an axis of constant length");
  auto number = [&](int64_t v) -> Result<Value> {
    INVAR_TRY(Value one, shaped(node, node.constant(Sizes(v)), {}));
    return type.isSignlessInteger(64) ? Result<Value>(one) : node.make<CastOp>(one, {}, tensor_of({}, type));
  };
  Value order;
  for (int64_t low = 0; low < bits; low += kPiece) {
    const bool last = low + kPiece >= bits;
    Value piece = x;
    if (order) {
      INVAR_TRY(piece, node.make<GatherElementsOp>({x, order}, node.attr("axis", axis)));
    }
    if (low) {
      INVAR_TRY(Value by, number(low));
      INVAR_TRY(piece, node.make<ShiftRightOp>({piece, by}));
    }
    if (!last) {
      INVAR_TRY(Value mask, number((int64_t{1} << kPiece) - 1));
      INVAR_TRY(piece, node.make<BitwiseAndOp>({piece, mask}));
    }
    INVAR_TRY(piece, node.make<CastOp>(piece, {}, tensor_of(shape, node.build().getF32Type())));
    INVAR_TRY(Value places,
              node.make<TopkOp>(piece, {node.attr("axis", axis), node.attr("k", last ? k : length.value),
                                        node.attr("largest", largest)}));
    if (order) {
      INVAR_TRY(places, node.make<GatherElementsOp>({order, places}, node.attr("axis", axis)));
    }
    order = places;
  }
  return order;
}

// Values are picked by the indices: one sort for both results.
Status topk(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis", "largest", "sorted"}, 2));
  INVAR_TRY(std::vector<int64_t> k, node.constants(1));
  if (k.size() != 1) return bad_input("operand 1 is not one number");
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t largest, node.i("largest", 1));
  Value index;
  const Type type = element_of(node.in(0));
  if (const int64_t bits = type.isSignlessInteger(64) ? 64 : type.isSignlessInteger(32) ? 32 : 0) {
    INVAR_TRY(index, places_of_integers(node, node.in(0), bits, axis, k[0], int64_t{largest != 0}));
  } else {
    INVAR_TRY(index, node.make<TopkOp>(node.in(0), {node.attr("axis", axis), node.attr("k", k[0]),
                                                    node.attr("largest", int64_t{largest != 0})}));
  }
  INVAR_TRY(Value values, node.make<GatherElementsOp>({node.in(0), index}, node.attr("axis", axis)));
  node.replace(1, index, /*stays_wide=*/true);
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
  rooms.on("TopK", 10, topk, Widens::ordered);
}

}  // namespace invar::ir
