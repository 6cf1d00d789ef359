// Unique of elements that are known at run time only (onnx.22): sort, mark where groups of equals
// begin, compact.
#include "compiler/lowering/builders/dynamic_unique.h"

#include "compiler/lowering/builders/argsort.h"
#include "compiler/lowering/builders/expr_builder.h"
#include "compiler/lowering/builders/nonzero_indices.h"

namespace invar::compiler {
namespace {

// A sort key for the elements: themselves, or f32 if that holds them exactly; null if neither can
// be sorted.
Value sort_key(ExprBuilder& f, Value x) {
  const std::optional<DType> type = dtype_of(element_of(x));
  if (type == DType::i64 || type == DType::i32) return x;
  const bool fits = type == DType::f32 || (type && (size_of(*type) <= 2));
  return fits ? f.to_f32(x) : Value();
}

}  // namespace

Status unique_dynamic(NodeView& node, std::optional<int64_t> axis, bool sorted) {
  const Shape shape = node.shape(0);
  for (size_t d = 0; axis && d < shape.size(); ++d)
    if (static_cast<int64_t>(d) != *axis && shape[d] != Dim::of(1))
      return node.not_constant(node.in(0),
                               "slices of more than one element are not constants in the model file");
  INVAR_TRY(const Value x, flatten_to_1d(node, node.in(0)));
  ExprBuilder f(node);
  const Shape row = shape_of(x.getType());
  const Type i64 = node.builder().getI64Type();
  const NamedAttribute along = node.attr("axis", int64_t{0});
  const Value zero = node.constant(Ints(0)), one = node.constant(Ints(1)), key = sort_key(f, x);
  if (!key)
    return node.not_constant(node.in(0), "elements of their type are not constants in the model file");
  auto gather = [&](Value from, Value at) { return f.make<GatherElementsOp>({from, at}, along); };
  auto scatter = [&](Value into, Value at, Value what, int64_t reduction) {
    return f.make<ScatterElementsOp>({into, at, what}, {along, node.attr("reduction", reduction)});
  };
  auto running_index = [&](Value flags) {
    const Value counts = f.make<CumsumOp>(
        f.to_i64(flags), {along, node.attr("exclusive", int64_t{0}), node.attr("reverse", int64_t{0})});
    return f.sub(counts, one);
  };
  const Value index = f.make<IotaOp>({zero, one}, {}, tensor_of(row, i64));
  const Value order = f.check(argsort(node, key, 0, std::nullopt, /*largest=*/false));
  const Value in_order = gather(key, order), before = gather(in_order, f.max(f.sub(index, one), zero));
  INVAR_CHECK_OK(f.status());
  Value same = f.make<EqualOp>({in_order, before});
  if (element_of(key).isF32())
    same = f.logical_or(same, f.logical_and(f.make<IsnanOp>(in_order), f.make<IsnanOp>(before)));
  // Marks the begin of each group of equals; `group` is the group's number of each sorted element.
  Value begins = f.logical_or(f.make<LogicalNotOp>(same), f.make<EqualOp>({index, zero}));
  Value group = running_index(begins);
  if (!sorted) {
    // Renumbers the groups in the order of their first elements in x.
    const Value minimum_index = scatter(f.expand(node.constant(Ints(INT64_MAX)), row), group, order, 3);
    const Value first = gather(minimum_index, group);
    begins = f.make<EqualOp>({index, scatter(index, order, first, 0)});
    group = gather(running_index(begins), first);
  }
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const NonzeroIndices selected, nonzero_indices(node, begins));
  const Shape found = {selected.count};
  const Value first = sorted ? gather(order, selected.index) : selected.index;
  Shape result = found;
  if (axis) result = shape, result[static_cast<size_t>(*axis)] = selected.count;
  const Value out = f.reshape(gather(x, first), result);
  const Value counts = scatter(f.expand(zero, found), group, f.expand(one, row), 1);
  const Value inverse = scatter(index, order, group, 0);
  INVAR_CHECK_OK(f.status());
  node.replace(1, first, /*stays_wide=*/true);
  node.replace(2, inverse, /*stays_wide=*/true);
  node.replace(3, counts, /*stays_wide=*/true);
  return node.replace(out);
}

}  // namespace invar::compiler
