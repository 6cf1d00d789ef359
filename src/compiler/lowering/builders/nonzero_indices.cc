// Stream compaction by operations of the repro dialect.
#include "compiler/lowering/builders/nonzero_indices.h"

namespace invar::compiler {

Result<Value> flatten_to_1d(NodeView& node, Value x) {
  const std::optional<DimExpr> n = element_count(shape_of(x.getType()));
  if (!n) return not_covered("a dimension is unknown, or there are more elements than can be counted");
  return reshape(node, x, {Dim::of(*n)});
}

// A stable partition of all indices puts those of true elements first: the target of a true element
// is the number of true ones before it (an exclusive prefix sum); a false one follows all true
// ones.
Result<NonzeroIndices> nonzero_indices(NodeView& node, Value flags) {
  const Shape row = shape_of(flags.getType());
  const Type i64 = node.builder().getI64Type();
  const int64_t zero = 0, one = 1;
  const Value first = node.constant(Ints(zero)), step = node.constant(Ints(one));
  INVAR_TRY(Value counts, node.make<CastOp>(flags, {}, tensor_of(row, i64)));
  INVAR_TRY(Value total,
            node.make<ReduceSumOp>(counts, {node.attr("axes", Ints(zero)), node.attr("keepdims", one)}));
  INVAR_TRY(Value prefix_sum,
            node.make<CumsumOp>(
                counts, {node.attr("axis", zero), node.attr("exclusive", zero), node.attr("reverse", zero)}));
  INVAR_TRY(Value index, node.make<IotaOp>({first, step}, {}, tensor_of(row, i64)));
  INVAR_TRY(Value true_target, node.make<SubOp>({prefix_sum, step}));
  INVAR_TRY(Value false_target, node.make<SubOp>({index, prefix_sum}));
  INVAR_TRY(false_target, node.make<AddOp>({false_target, total}));
  INVAR_TRY(Value target, node.make<WhereOp>({flags, true_target, false_target}));
  INVAR_TRY(Value partitioned,
            node.make<ScatterElementsOp>({index, target, index},
                                         {node.attr("axis", zero), node.attr("reduction", zero)}));
  const Dim count = Dim::of(node.bind_dim(total, 0));
  INVAR_TRY(Value chosen, slice(node, partitioned, 0, 0, count));
  return NonzeroIndices{count, chosen};
}

}  // namespace invar::compiler
