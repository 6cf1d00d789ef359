// What a program chooses of a row when it runs: as many as there are (onnx.22).
#pragma once

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

// In one row.
inline Result<Value> flattened(Node& node, Value x) {
  const std::optional<Polynomial> n = count_of(shape_of(x.getType()));
  if (!n) return not_covered("a dimension is unknown, or there are more elements than can be counted");
  return shaped(node, x, {Extent::of(*n)});
}

struct Places {
  Extent count;
  Value index;  // i64 [count], ascending
};
// Where a row of booleans is true. All places are ordered, those first: each goes behind as many as are true before it, or behind all
// that are true and as many as are false before it.
inline Result<Places> places_of(Node& node, Value flags) {
  const Shape row = shape_of(flags.getType());
  const Type whole = node.build().getI64Type();
  const int64_t zero = 0, one = 1;
  const Value first = node.constant(Sizes(zero)), step = node.constant(Sizes(one));
  INVAR_TRY(Value counts, node.make<CastOp>(flags, {}, tensor_of(row, whole)));
  INVAR_TRY(Value all,
            node.make<ReduceSumOp>(counts, {node.attr("axes", Sizes(zero)), node.attr("keepdims", one)}));
  INVAR_TRY(Value so_far, node.make<CumsumOp>(counts, {node.attr("axis", zero), node.attr("exclusive", zero),
                                                       node.attr("reverse", zero)}));
  INVAR_TRY(Value index, node.make<IotaOp>({first, step}, {}, tensor_of(row, whole)));
  INVAR_TRY(Value before, node.make<SubOp>({so_far, step}));
  INVAR_TRY(Value behind, node.make<SubOp>({index, so_far}));
  INVAR_TRY(behind, node.make<AddOp>({behind, all}));
  INVAR_TRY(Value place, node.make<WhereOp>({flags, before, behind}));
  INVAR_TRY(Value ordered,
            node.make<ScatterElementsOp>({index, place, index},
                                         {node.attr("axis", zero), node.attr("reduction", zero)}));
  const Extent count = Extent::of(node.bind(all, 0));
  INVAR_TRY(Value chosen, part(node, ordered, 0, 0, count));
  return Places{count, chosen};
}

}  // namespace invar::compiler
