#include "ir/places.h"

namespace invar::ir {
namespace {

// Places of the first elements along an axis, of all where k is absent. Of a number that is no constant all are sorted.
Result<Value> sorted(Node& node, Value x, int64_t axis, const std::optional<Polynomial>& k, int64_t largest) {
  const Extent length = shape_of(x.getType())[static_cast<size_t>(axis)];
  SmallVector<NamedAttribute> attrs = {node.attr("axis", axis), node.attr("largest", largest)};
  const bool constant = k && k->constant();
  if (constant || (!k && length.constant()))
    attrs.push_back(node.attr("k", constant ? *k->constant() : length.value));
  INVAR_TRY(Value all, node.make<TopkOp>(x, attrs));
  return constant || !k ? all : first_of(node, all, Extent::of(*k), static_cast<size_t>(axis));
}

// Places of the k first of integers of `bits` bits: sorted by pieces of 24 bits, which f32 holds, from the lowest. Each sort
// keeps the order of equals, so the last decides and those before it decide among its equals.
Result<Value> places_of_integers(Node& node, Value x, int64_t bits, int64_t axis, const Polynomial& k,
                                 int64_t largest) {
  constexpr int64_t kPiece = 24;
  const Shape shape = shape_of(x.getType());
  const Type type = element_of(x);
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
    INVAR_TRY(Value places, sorted(node, piece, axis, last ? std::optional(k) : std::nullopt, largest));
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
  INVAR_TRY(std::vector<Polynomial> k, node.sizes(1));
  if (k.size() != 1) return bad_input("operand 1 is not one number");
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t largest, node.i("largest", 1));
  Value index;
  const Type type = element_of(node.in(0));
  if (const int64_t bits = type.isSignlessInteger(64) ? 64 : type.isSignlessInteger(32) ? 32 : 0) {
    INVAR_TRY(index, places_of_integers(node, node.in(0), bits, axis, k[0], int64_t{largest != 0}));
  } else {
    INVAR_TRY(index, sorted(node, node.in(0), axis, k[0], int64_t{largest != 0}));
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
  if (const std::optional<int64_t> k = op.getK()) {  // an open axis is asked when the program runs
    if (*k < 0 || (shape[axis].constant() && *k > shape[axis].value))
      return mismatch(loc, "k = " + std::to_string(*k) + " of " + text_of(shape[axis]) + " elements");
    shape[axis] = Extent::of(*k);
  }
  out.push_back(tensor_of(shape, IntegerType::get(context, 64)));
  return success();
}

// Before opset 10 k was an attribute.
void import_topk(Rooms& rooms) {
  rooms.on("TopK", 10, topk, Widens::ordered);
}

}  // namespace invar::ir
