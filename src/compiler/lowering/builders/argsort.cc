// Argsort: TopK of f32, and a radix sort by TopK of other types.
#include "compiler/lowering/builders/argsort.h"

namespace invar::compiler {
namespace {

// Sorts f32: the k first; without k, all, along an axis of any length.
Result<Value> argsort_f32(NodeView& node, Value x, int64_t axis, std::optional<int64_t> k, bool largest) {
  const Dim length = shape_of(x.getType())[static_cast<size_t>(axis)];
  SmallVector<NamedAttribute> attrs = {node.attr("axis", axis), node.attr("largest", int64_t{largest})};
  if (k || length.constant()) attrs.push_back(node.attr("k", k.value_or(length.value)));
  return node.make<TopkOp>(x, attrs);
}

// Sorts i32 or i64: a radix sort by digits of 24 bits, which f32 holds exactly, from the lowest
// digit. Each pass is stable.
Result<Value> argsort_integers(NodeView& node, Value x, int64_t axis, std::optional<int64_t> k,
                               bool largest) {
  constexpr int64_t kPiece = 24;
  const Shape shape = shape_of(x.getType());
  const Type type = element_of(x);
  const int64_t bits = type.getIntOrFloatBitWidth();
  auto number = [&](int64_t v) -> Result<Value> {
    INVAR_TRY(Value one, reshape(node, node.constant(Ints(v)), {}));
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
    INVAR_TRY(piece, node.make<CastOp>(piece, {}, tensor_of(shape, node.builder().getF32Type())));
    INVAR_TRY(Value indices, argsort_f32(node, piece, axis, last ? k : std::nullopt, largest));
    if (order) {
      INVAR_TRY(indices, node.make<GatherElementsOp>({order, indices}, node.attr("axis", axis)));
    }
    order = indices;
  }
  return order;
}

}  // namespace

Result<Value> argsort(NodeView& node, Value x, int64_t axis, std::optional<int64_t> k, bool largest) {
  const Type type = element_of(x);
  return type.isSignlessInteger(64) || type.isSignlessInteger(32)
             ? argsort_integers(node, x, axis, k, largest)
             : argsort_f32(node, x, axis, k, largest);
}

}  // namespace invar::compiler
