// Lowering of Slice and Split, and the parsing of bounds that count from either end.
#include <algorithm>
#include <numeric>

#include "compiler/room_api.h"
#include "ops/move/import/rules.h"

namespace invar::compiler {
namespace {

constexpr int64_t kMaxDimSize = int64_t{1} << 40;  // no dimension has more

Result<std::vector<DimExpr>> dims_from_attr_or_operand(NodeView& node, const char* name, unsigned i,
                                                       int64_t since) {
  if (node.version() >= since && node.has(i)) return node.dim_exprs(i);
  INVAR_TRY(std::vector<int64_t> list, ints_from_attr_or_operand(node, name, i, since));
  return std::vector<DimExpr>(list.begin(), list.end());
}

// A bound as a distance from the begin or from the end.
struct SliceBound {
  DimExpr at;
  bool from_end = false, nonnegative = true;  // nonnegative: `at` is known to be
};

// Tells whether a bound is negative, so that it counts from the end, whatever the sizes are.
bool counts_from_end(const DimExpr& bound) {
  const std::optional<DimExpr> back = difference(-1, bound);
  return back && back->is_nonnegative();
}
// Tells whether a bound is negative or 0: ONNX counts from different ends then.
bool ambiguous_sign(const DimExpr& bound) {
  const std::optional<DimExpr> back = product(bound, -1);
  return !bound.constant() && back && back->is_nonnegative() && !counts_from_end(bound);
}

SliceBound parse_bound(const DimExpr& n, const DimExpr& bound) {
  if (const std::optional<int64_t> c = bound.constant()) {
    if (*c >= kToEnd) return {0, true};
    if (*c <= -kToEnd) return {0};
    return *c < 0 ? SliceBound{-*c, true} : SliceBound{*c};
  }
  if (sum(n, bound) == DimExpr(0)) return {0};               // the last n of n
  if (difference(n, bound) == DimExpr(1)) return {1, true};  // n - 1: for an n of 0, too
  if (counts_from_end(bound))
    if (const std::optional<DimExpr> back = product(bound, -1)) return {*back, true};
  return {bound, false, bound.is_nonnegative()};
}

// The range from a bound that lies inside the dimension if it has elements.
SliceRange range_from(const DimExpr& n, const SliceBound& start, int64_t step, const Dim& size) {
  const std::optional<int64_t> at = start.at.constant();
  if (at && !start.from_end) return {*at, step, size};
  if (at) return {-*at, step, size};
  const std::optional<DimExpr> other = difference(n, start.at);
  if (other && other->constant().value_or(0) > 0 && !start.from_end) return {-*other->constant(), step, size};
  return {0, 1, size, start.from_end ? other : start.at, step};
}

// The range between two bounds that lie inside the dimension; kernels check it.
Result<SliceRange> range_between(const Dim& n, const DimExpr& from, const DimExpr& to) {
  const std::optional<DimExpr> size = dim_expr_of(n), length = difference(to, from);
  if (!size || !length) return not_covered("bounds " + text_of(from) + " and " + text_of(to));
  if (length->constant().value_or(0) < 0) return bad_input("bounds " + text_of(from) + " and " + text_of(to));
  if (*length == 0) return SliceRange{0, 1, Dim::of(0)};
  return range_from(*size, {from}, 1, Dim::of(*length));
}

// max(a - b, 0).
std::optional<DimExpr> saturating_difference(const DimExpr& a, const DimExpr& b) {
  const std::optional<DimExpr> both = minimum(a, b);
  return both ? difference(a, *both) : both;
}

// The length between two bounds in a dimension of n after ONNX's clamping. A bound that may be
// negative counts as non-negative: if it is negative at run time, the length or start is negative
// too, which kernels refuse.
std::optional<DimExpr> clamped_length(const DimExpr& n, const SliceBound& start, const SliceBound& end) {
  const std::optional<DimExpr> cut = sum(start.at, end.at);
  if (!start.from_end && end.from_end) return cut ? saturating_difference(n, *cut) : cut;
  const std::optional<DimExpr> first = minimum(n, start.at), last = minimum(n, end.at);
  const std::optional<DimExpr> low = first && start.from_end ? difference(n, *first) : first;
  if (!low || !last) return std::nullopt;
  if (start.from_end && end.from_end) return saturating_difference(*first, *last);
  return end.nonnegative ? saturating_difference(*last, *low) : difference(*last, *low);
}

// The length between two bounds if nothing is clamped, and the inequality under which that holds.
std::optional<UnclampedSlice> unclamped_slice(const DimExpr& n, const SliceBound& start,
                                              const SliceBound& end) {
  const std::optional<DimExpr> cut = sum(start.at, end.at);
  const std::optional<DimExpr> length = !cut || (start.from_end && !end.from_end) ? std::nullopt
                                        : start.from_end ? difference(start.at, end.at)
                                        : end.from_end   ? difference(n, *cut)
                                                         : difference(end.at, start.at);
  if (!length) return std::nullopt;
  const DimExpr lower = start.from_end ? start.at : end.from_end ? *cut : end.at;
  // The only element of a symbolic dimension may be broadcast to that length, so nothing follows
  // for n.
  const bool repeats = !n.constant() && start.from_end == end.from_end && *length != 1;
  return UnclampedSlice{*length, lower, repeats ? lower : n};
}

// Says if a Squeeze reads the result: a slice of one element must have it then, and branches may
// depend on its shape.
bool is_squeezed(const NodeView& node) {
  return llvm::any_of(node.out(0).getUsers(), [](Operation* op) {
    auto reader = dyn_cast<NodeOp>(op);
    return reader && reader.getOpType() == "Squeeze";
  });
}

Result<SliceRange> forward_range(NodeView& node, const DimExpr& n, const SliceBound& start,
                                 const SliceBound& end, int64_t step) {
  const std::optional<DimExpr> length = clamped_length(n, start, end);
  if (!length) return not_covered("bounds of " + text_of(n));
  if (*length == 0 || length->constant().value_or(0) < 0) {
    if (!start.nonnegative || !end.nonnegative)  // one that may be below 0 may count from the end
      return not_covered("bounds of " + text_of(n) + " that may be below 0");
    return SliceRange{0, 1, Dim::of(0)};
  }
  std::optional<DimExpr> taken = length;
  if (const std::optional<UnclampedSlice> all = unclamped_slice(n, start, end)) {
    node.note_clamped_slice(*length, *all);
    if (all->length == 1 && is_squeezed(node)) taken = 1;
  }
  const std::optional<DimExpr> up = sum(*taken, step - 1), count = up ? floor_div(*up, step) : up;
  if (!count) return not_covered("a step of " + std::to_string(step) + " along " + text_of(*length));
  const Dim size = Dim::of(*count);
  // A start counted from the end can stay so for the last element, or if the dimension is known to
  // be long enough.
  const std::optional<DimExpr> last = minimum(n, start.at);
  if (!start.from_end || start.at == 1 || last == start.at) return range_from(n, start, step, size);
  const std::optional<DimExpr> from = last ? difference(n, *last) : last;
  if (!from) return not_covered("bounds of " + text_of(n));
  return range_from(n, {*from}, step, size);
}

// A negative step. Bounds are shifted by one: an end may be the position before the first element,
// a start may not.
Result<SliceRange> backward_range(const DimExpr& n, const DimExpr& first, const DimExpr& last, int64_t step) {
  const SliceBound start = parse_bound(n, first), end = parse_bound(n, last);
  const bool to_begin = last.constant().value_or(0) <= -kToEnd;
  const auto shifted = [&n](const SliceBound& p, const std::optional<DimExpr>& most) {
    const std::optional<DimExpr> at = sum(p.at, p.from_end ? -1 : 1);
    const std::optional<DimExpr> clamped = at && most ? minimum(p.from_end ? *most : n, *at) : at;
    return clamped && p.from_end ? difference(n, *clamped) : clamped;
  };
  const auto position = [&](const SliceBound& p, const std::optional<DimExpr>& most) {
    return p.from_end && p.at == 0 ? std::optional(n) : shifted(p, most);
  };
  const std::optional<DimExpr> before = saturating_difference(n, 1), from = position(start, before),
                               to = to_begin ? DimExpr(0) : position(end, n);
  const std::optional<DimExpr> length = from && to ? saturating_difference(*from, *to) : from;
  const std::optional<DimExpr> up = length ? sum(*length, -step - 1) : length,
                               count = up ? floor_div(*up, -step) : up;
  const std::optional<DimExpr> at = from ? saturating_difference(*from, 1) : from;
  if (!count || !at) return not_covered("bounds " + text_of(first) + " and " + text_of(last));
  if (*count == 0) return SliceRange{0, 1, Dim::of(0)};
  if (*from == n) return SliceRange{-1, step, Dim::of(*count)};
  return range_from(n, {*at}, step, Dim::of(*count));
}

Result<SliceRange> parse_range(NodeView& node, const Dim& n, const DimExpr& first, const DimExpr& last,
                               int64_t step) {
  if (step == 0) return bad_input("a step of 0");
  if (!n.constant() || !first.constant() || !last.constant()) {
    const std::optional<DimExpr> size = dim_expr_of(n);
    if (!size) return not_covered("a dimension is unknown");
    if (step < 0) return backward_range(*size, first, last, step);
    const SliceBound start = parse_bound(*size, first), end = parse_bound(*size, last);
    return forward_range(node, *size, start, end, step);
  }
  int64_t start = *first.constant(), end = *last.constant();
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n.value : n.value - 1;
  auto clamp = [&](int64_t at, int64_t least) { return std::clamp(at < 0 ? at + n.value : at, least, high); };
  start = clamp(start, 0), end = clamp(end, low);
  using Wide = __int128;
  Wide span = step > 0 ? Wide{end} - start : Wide{start} - end, stride = step > 0 ? Wide{step} : -Wide{step};
  int64_t size = span > 0 ? static_cast<int64_t>((span + stride - 1) / stride) : 0;
  return SliceRange{size ? start : 0, size > 1 ? step : 1, Dim::of(size)};
}

// Slice with bounds that are known at run time only: clamps them, computes the lengths and gathers.
Status slice_dynamic(NodeView& node, const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  const Shape from = node.shape(0);
  const auto count = static_cast<int64_t>(axes.size());
  std::vector<DimExpr> lengths;
  // A start is in [0, n - past], an end in [low, n - past].
  std::vector<int64_t> low, past, stride, rounds;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, NodeView::normalize_axis(axes[i], from.size()));
    const std::optional<DimExpr> n = dim_expr_of(from[static_cast<size_t>(axis)]);
    if (!n) return not_covered("a dimension is unknown");
    if (steps[i] == 0) return bad_input("a step of 0");
    lengths.push_back(*n), stride.push_back(steps[i]),
        rounds.push_back(steps[i] > 0 ? steps[i] - 1 : steps[i] + 1);
    low.push_back(steps[i] > 0 ? 0 : -1), past.push_back(steps[i] > 0 ? 0 : 1);
  }
  const Value size = node.size_tensor(lengths, count), zero = node.constant(Ints(0));
  INVAR_TRY(const Value high, node.make<SubOp>({size, node.constant(past)}));
  const auto position = [&](Value at, const Value& least) -> Result<Value> {
    if (!element_of(at).isSignlessInteger(64)) {
      INVAR_TRY(at, node.make<CastOp>(at, {}, tensor_of({Dim::of(count)}, node.builder().getI64Type())));
    }
    INVAR_TRY(at, node.make<MinOp>({at, node.constant(Ints(kMaxDimSize))}));
    INVAR_TRY(at, node.make<MaxOp>({at, node.constant(Ints(-2 * kMaxDimSize))}));
    INVAR_TRY(Value negative, node.make<LessOp>({at, zero}));
    INVAR_TRY(Value from_end, node.make<AddOp>({at, size}));
    INVAR_TRY(at, node.make<WhereOp>({negative, from_end, at}));
    INVAR_TRY(at, node.make<MaxOp>({at, least}));
    return node.make<MinOp>({at, high});
  };
  INVAR_TRY(const Value start, position(node.in(1), zero));
  INVAR_TRY(const Value end, position(node.in(2), node.constant(low)));
  INVAR_TRY(Value length, node.make<SubOp>({end, start}));
  INVAR_TRY(length, node.make<AddOp>({length, node.constant(rounds)}));
  INVAR_TRY(length, node.make<DivOp>({length, node.constant(stride)}));
  INVAR_TRY(length, node.make<MaxOp>({length, zero}));
  Value x = node.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, NodeView::normalize_axis(axes[i], from.size()));
    INVAR_TRY(Value first, slice(node, start, 0, static_cast<int64_t>(i), 1));
    INVAR_TRY(Value indices,
              node.make<IotaOp>({first, node.constant(Ints(steps[i]))}, {},
                                tensor_of({Dim::of(node.bind_dim(length, static_cast<int64_t>(i)))},
                                          node.builder().getI64Type())));
    INVAR_TRY(x, node.make<GatherOp>({x, indices}, node.attr("axis", axis)));
  }
  return node.replace(x);
}

// Tells whether the sign of a bound is unknown, so that it may count from either end.
bool is_ambiguous_bound(const DimExpr& n, const DimExpr& bound) {
  return (ambiguous_sign(bound) && sum(n, bound) != DimExpr(0)) || !parse_bound(n, bound).nonnegative;
}

Status slice(NodeView& node) {
  std::vector<int64_t> axes, steps;
  if (node.version() < 10) {
    INVAR_CHECK_OK(node.expect(1, 1, {"starts", "ends", "axes"}));
  } else {
    INVAR_CHECK_OK(node.expect(3, 5, {}));
    INVAR_TRY(steps, ints_from_attr_or_operand(node, "steps", 4, 10));
  }
  INVAR_TRY(axes, ints_from_attr_or_operand(node, "axes", 3, 10));
  const Shape from = node.shape(0);
  std::vector<std::optional<DimExpr>> known[2];
  for (unsigned i : {0, 1}) {
    if (node.version() < 10) {
      INVAR_TRY(const std::vector<int64_t> list, node.ints_attr(i ? "ends" : "starts"));
      known[i].assign(list.begin(), list.end());
    } else {
      INVAR_TRY(known[i], node.known_dim_exprs(i + 1));
    }
  }
  const size_t count = known[0].size();
  if (axes.empty()) {
    axes.resize(count);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(count, 1);
  if (known[1].size() != count || axes.size() != count || steps.size() != count)
    return bad_input("starts, ends, axes and steps differ in length");
  bool computed = false;
  for (size_t i = 0; i < count; ++i) {
    INVAR_TRY(axes[i], NodeView::normalize_axis(axes[i], from.size()));
    const std::optional<DimExpr> n = dim_expr_of(from[static_cast<size_t>(axes[i])]);
    if (!n) return not_covered("a dimension is unknown");
    for (const auto& bounds : known) computed |= !bounds[i] || is_ambiguous_bound(*n, *bounds[i]);
    steps[i] = std::clamp(steps[i], -kMaxDimSize, kMaxDimSize);  // no dimension is longer
  }
  if (computed && node.version() >= 10) return slice_dynamic(node, axes, steps);
  INVAR_TRY(std::vector<DimExpr> starts, dims_from_attr_or_operand(node, "starts", 1, 10));
  INVAR_TRY(std::vector<DimExpr> ends, dims_from_attr_or_operand(node, "ends", 2, 10));
  std::vector<SliceRange> ranges = full_ranges(from);
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (!seen.insert(axes[i]).second) return bad_input("axis " + std::to_string(axes[i]) + " twice");
    INVAR_TRY(ranges[d], parse_range(node, from[d], starts[i], ends[i], steps[i]));
  }
  INVAR_TRY(Value out, slice_ranges(node, ranges));
  return node.replace(out);
}

// The sizes of the parts: an attribute, an operand from opset 13 on, and either in opset 1.
Status split(NodeView& node) {
  const unsigned parts = node.num_results();
  if (node.version() < 2) {
    INVAR_CHECK_OK(node.expect(1, 2, {"axis", "split"}, parts));
  } else if (node.version() < 13) {
    INVAR_CHECK_OK(node.expect(1, 1, {"axis", "split"}, parts));
  } else {
    INVAR_CHECK_OK(node.expect(1, 2, {"axis", "num_outputs"}, parts));
  }
  INVAR_TRY(int64_t wanted, node.int_attr("axis", 0));
  const Shape from = node.shape(0);
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, from.size()));
  INVAR_TRY(std::vector<DimExpr> sizes, dims_from_attr_or_operand(node, "split", 1, node.has(1) ? 1 : 13));
  INVAR_TRY(int64_t count, node.int_attr("num_outputs", parts));
  const std::optional<DimExpr> n = dim_expr_of(from[axis]);
  if (!n) return not_covered("a dimension is unknown");
  if (sizes.empty()) {
    if (count != parts) return bad_input("num_outputs is not the number of results");
    const std::optional<DimExpr> equal = exact_div(*n, parts);
    if (!equal && !n->constant())
      return not_covered("dimension " + text_of(*n) + " cannot be shown to divide into parts");
    if (!equal && node.version() < 18)
      return bad_input(text_of(*n) + " elements do not divide into " + std::to_string(parts) + " parts");
    const int64_t all = n->constant().value_or(0), each = (all + parts - 1) / parts;
    for (int64_t at = 0; sizes.size() < parts; at += each)
      sizes.push_back(equal ? *equal : DimExpr(std::clamp<int64_t>(all - at, 0, each)));
  }
  std::vector<DimExpr> bounds = {0};
  std::optional<DimExpr> total = 0;
  for (const DimExpr& s : sizes) {
    total = sum(*total, s);
    if (total) bounds.push_back(*total);
    if (s.constant().value_or(0) < 0) return bad_input("a part of negative size");
    if (!total) return not_covered("more elements than can be counted");
  }
  if (sizes.size() != parts || (total->constant() && n->constant() && *total != *n))
    return bad_input("the parts do not make up the " + text_of(*n) + " elements of the axis");
  // If not known, the call decides: the last part must have the length that remains.
  const bool decided = *total == *n;
  if (!decided && !may_be_equal(Dim::of(*total), from[axis]))
    return not_covered("parts of " + text_of(*total) + " elements of an axis of " + text_of(*n));
  if (!decided) bounds.back() = *n;
  for (unsigned i = 0; i < parts; ++i) {
    std::vector<SliceRange> ranges = full_ranges(from);
    INVAR_TRY(ranges[axis], range_between(from[axis], bounds[i], bounds[i + 1]));
    INVAR_TRY(Value part, slice_ranges(node, ranges));
    Shape shape = from;
    shape[axis] = Dim::of(sizes[i]);
    INVAR_TRY(part, reshape(node, part, shape));
    node.replace(i, part);
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> ints_from_attr_or_operand(NodeView& node, const char* name, unsigned i,
                                                       int64_t since) {
  if (node.version() < since) return node.ints_attr(name);
  if (!node.has(i)) return std::vector<int64_t>{};
  return node.constant_ints(i);
}

Result<Value> slice_ranges(NodeView& node, const std::vector<SliceRange>& ranges) {
  Value x = node.in(0);
  const Type element = element_of(x);
  const bool narrow =
      element.isF16() || element.isBF16();  // a gather would widen them, so it gets their bits
  const auto as = [&](Type type) {
    return node.make<BitcastOp>(x, {}, tensor_of(shape_of(x.getType()), type));
  };
  const bool computed = llvm::any_of(ranges, [](const SliceRange& range) { return range.from.has_value(); });
  if (computed && narrow) {
    INVAR_TRY(x, as(node.builder().getIntegerType(16)));
  }
  // A symbolic start becomes a gather of indices.
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (!ranges[d].from) continue;
    INVAR_TRY(const Value first, nonnegative_size_tensor(node, *ranges[d].from));
    INVAR_TRY(Value indices, node.make<IotaOp>({first, node.size_tensor(DimExpr(ranges[d].stride), {})}, {},
                                               tensor_of({ranges[d].size}, node.builder().getI64Type())));
    INVAR_TRY(x, node.make<GatherOp>({x, indices}, node.attr("axis", static_cast<int64_t>(d))));
  }
  if (computed && narrow) {
    INVAR_TRY(x, as(element));
  }
  std::vector<int64_t> starts, steps;
  Shape shape;
  bool takes_all = true;
  const Shape from = shape_of(x.getType());
  for (size_t d = 0; d < ranges.size(); ++d) {
    starts.push_back(ranges[d].start), steps.push_back(ranges[d].step), shape.push_back(ranges[d].size);
    takes_all &= ranges[d].start == 0 && ranges[d].step == 1 && ranges[d].size == from[d];
  }
  if (takes_all) return x;
  return node.make<SliceOp>(x, {node.attr("starts", Ints(starts)), node.attr("steps", Ints(steps))},
                            tensor_of(shape, element_of(x)));
}

std::vector<SliceRange> full_ranges(const Shape& shape) {
  std::vector<SliceRange> ranges;
  for (const Dim& e : shape) ranges.push_back({0, 1, e});
  return ranges;
}

void import_move_slices(RuleRegistry& registry) {
  registry.add_rule("Slice", 1, slice, "TIIII>T");
  registry.add_rule("Split", 1, split);
}

}  // namespace invar::compiler
