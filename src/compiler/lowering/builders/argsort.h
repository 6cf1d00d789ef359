// Elements in their order: where each comes from.
#pragma once

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

// The k first of f32 along an axis; without k all, in an axis of any length.
inline Result<Value> places_of_floats(Node& node, Value x, int64_t axis, std::optional<int64_t> k,
                                      bool largest) {
  const Extent length = shape_of(x.getType())[static_cast<size_t>(axis)];
  SmallVector<NamedAttribute> attrs = {node.attr("axis", axis), node.attr("largest", int64_t{largest})};
  if (k || length.constant()) attrs.push_back(node.attr("k", k.value_or(length.value)));
  return node.make<TopkOp>(x, attrs);
}

// The same of integers of 32 or 64 bits: sorted by pieces of 24 bits, which f32 holds, from the lowest. Each sort keeps the order of
// equals, so the last decides and those before it decide among its equals.
inline Result<Value> places_of_integers(Node& node, Value x, int64_t axis, std::optional<int64_t> k,
                                        bool largest) {
  constexpr int64_t kPiece = 24;
  const Shape shape = shape_of(x.getType());
  const Type type = element_of(x);
  const int64_t bits = type.getIntOrFloatBitWidth();
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
    INVAR_TRY(Value places, places_of_floats(node, piece, axis, last ? k : std::nullopt, largest));
    if (order) {
      INVAR_TRY(places, node.make<GatherElementsOp>({order, places}, node.attr("axis", axis)));
    }
    order = places;
  }
  return order;
}

inline Result<Value> ordered_places(Node& node, Value x, int64_t axis, std::optional<int64_t> k,
                                    bool largest) {
  const Type type = element_of(x);
  return type.isSignlessInteger(64) || type.isSignlessInteger(32)
             ? places_of_integers(node, x, axis, k, largest)
             : places_of_floats(node, x, axis, k, largest);
}

}  // namespace invar::compiler
