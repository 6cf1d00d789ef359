// Unique of elements that are computed when the program runs (onnx.22): a sort brings equals together.
#pragma once
#include "compiler/lowering/builders/builder_dsl.h"
#include "compiler/lowering/builders/argsort.h"
#include "compiler/lowering/builders/compact.h"

namespace invar::compiler {

// What is sorted in the place of elements of a row: as f32 where that holds them all; null: nothing does.
inline Value sortable(Formula& f, Value x) {
  const std::optional<DType> type = dtype_of(element_of(x));
  if (type == DType::i64 || type == DType::i32) return x;
  const bool fits = type == DType::f32 || (type && (size_of(*type) <= 2));
  return fits ? f.real(x) : Value();
}

inline Status unique_at_run_time(Node& node, std::optional<int64_t> axis, bool sorted) {
  const Shape shape = node.shape(0);
  for (size_t d = 0; axis && d < shape.size(); ++d)
    if (static_cast<int64_t>(d) != *axis && shape[d] != Extent::of(1))
      return node.unknown(node.in(0), "slices of more than one element are not constants in the model file");
  INVAR_TRY(const Value x, flattened(node, node.in(0)));
  Formula f(node);
  const Shape row = shape_of(x.getType());
  const Type whole = node.build().getI64Type();
  const NamedAttribute along = node.attr("axis", int64_t{0});
  const Value zero = node.constant(Sizes(0)), one = node.constant(Sizes(1)), key = sortable(f, x);
  if (!key) return node.unknown(node.in(0), "elements of their type are not constants in the model file");
  auto pick = [&](Value from, Value at) { return f.make<GatherElementsOp>({from, at}, along); };
  auto put = [&](Value into, Value at, Value what, int64_t reduction) {
    return f.make<ScatterElementsOp>({into, at, what}, {along, node.attr("reduction", reduction)});
  };
  auto so_far = [&](Value flags) {
    const Value counts = f.make<CumsumOp>(
        f.whole(flags), {along, node.attr("exclusive", int64_t{0}), node.attr("reverse", int64_t{0})});
    return f.sub(counts, one);
  };
  const Value index = f.make<IotaOp>({zero, one}, {}, tensor_of(row, whole));
  const Value order = f.of(ordered_places(node, key, 0, std::nullopt, /*largest=*/false));
  const Value in_order = pick(key, order), before = pick(in_order, f.max(f.sub(index, one), zero));
  INVAR_CHECK_OK(f.status());
  Value same = f.make<EqualOp>({in_order, before});
  if (element_of(key).isF32())
    same = f.either(same, f.both(f.make<IsnanOp>(in_order), f.make<IsnanOp>(before)));
  // Where equals begin; the number of each one's group, and in each group the first of all.
  Value begins = f.either(f.make<LogicalNotOp>(same), f.make<EqualOp>({index, zero}));
  Value group = so_far(begins);
  if (!sorted) {
    // Groups by their first elements, at the places where these stand.
    const Value least = put(f.spread(node.constant(Sizes(INT64_MAX)), row), group, order, 3);
    const Value first = pick(least, group);
    begins = f.make<EqualOp>({index, put(index, order, first, 0)});
    group = pick(so_far(begins), first);
  }
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const Places places, places_of(node, begins));
  const Shape found = {places.count};
  const Value first = sorted ? pick(order, places.index) : places.index;
  Shape result = found;
  if (axis) result = shape, result[static_cast<size_t>(*axis)] = places.count;
  const Value out = f.shape(pick(x, first), result);
  const Value counts = put(f.spread(zero, found), group, f.spread(one, row), 1);
  const Value inverse = put(index, order, group, 0);
  INVAR_CHECK_OK(f.status());
  node.replace(1, first, /*stays_wide=*/true);
  node.replace(2, inverse, /*stays_wide=*/true);
  node.replace(3, counts, /*stays_wide=*/true);
  return node.replace(out);
}

}  // namespace invar::compiler
