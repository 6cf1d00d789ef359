// The ONNX nodes that choose elements: Transpose, Slice, Split, Concat, Expand; and how nodes give lists and numbers.
#pragma once
#include <algorithm>

#include "ir/compose.h"

namespace invar::ir {
namespace {

constexpr int64_t kFar = INT32_MAX;  // a bound that exporters write for "to the end"

// An integer list that is an attribute before opset `since` and then operand i; absent: empty.
Result<std::vector<int64_t>> list_of(Node& node, const char* name, unsigned i, int64_t since) {
  if (node.version() < since) return node.ints(name);
  if (!node.has(i)) return std::vector<int64_t>{};
  return node.constants(i);
}
Result<std::vector<Polynomial>> sizes_of(Node& node, const char* name, unsigned i, int64_t since) {
  if (node.version() >= since && node.has(i)) return node.sizes(i);
  INVAR_TRY(std::vector<int64_t> list, list_of(node, name, i, since));
  return std::vector<Polynomial>(list.begin(), list.end());
}

Type flipped(Type type) {
  Shape shape = shape_of(type);
  std::swap(shape[0], shape[1]);
  return tensor_of(shape, getElementTypeOrSelf(type));
}

// The transpose of a rank-2 weight, possibly behind one elementwise operation, is the weight read in the other order. Integers are
// not weights: exporters transpose lists of pads.
bool flip_weight(Node& node) {
  if (isa<IntegerType>(element_of(node.in(0)))) return false;
  Operation* through = node.in(0).getDefiningOp();
  auto weight = dyn_cast_or_null<ReproWeightOp>(through);
  if (!weight && through && isa<ReproOp>(through) && cast<ReproOp>(through).elementwise())
    weight = through->getOperand(0).getDefiningOp<ReproWeightOp>();
  if (!weight) return false;
  OpBuilder build(weight);
  build.setInsertionPointAfter(weight);
  auto other = cast<ReproWeightOp>(build.clone(*weight));
  other.getOut().setType(cast<RankedTensorType>(flipped(weight.getType())));
  other.setTransposed(!weight.getTransposed());
  Value result = other.getOut();
  if (through != weight) {
    Operation* copy = node.build().clone(*through);
    copy->setOperand(0, other.getOut());
    copy->getResult(0).setType(flipped(through->getResult(0).getType()));
    result = copy->getResult(0);
  }
  node.replace(0, result);
  return true;
}

Status transpose(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"perm"}));
  INVAR_TRY(std::vector<int64_t> perm, node.ints("perm"));
  if (perm.empty())
    for (size_t d = node.shape(0).size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  bool same = perm.size() == node.shape(0).size();
  for (size_t d = 0; d < perm.size(); ++d) same &= perm[d] == static_cast<int64_t>(d);
  if (same) return node.replace(node.in(0));
  if (perm == std::vector<int64_t>{1, 0} && flip_weight(node)) return {};
  INVAR_TRY(Value out, node.make<TransposeOp>(node.in(0), node.attr("perm", llvm::ArrayRef<int64_t>(perm))));
  return node.replace(out);
}

// A weight that something reads in the other order and cannot: it is stored transposed from here on. What a kernel would
// have widened is a weight no more and is widened before.
void turn(ReproWeightOp weight) {
  OpBuilder build(weight->getContext());
  build.setInsertionPointAfter(weight);
  const int64_t perm[] = {1, 0};
  Type shape = weight.getType();
  Operation* out = make_op(build, weight.getLoc(), TransposeOp::getOperationName(), weight.getOut(),
                           build.getNamedAttr("perm", build.getDenseI64ArrayAttr(perm)), shape);
  weight.getOut().setType(cast<RankedTensorType>(flipped(shape)));
  weight.setTransposed(false);
  Value wide;
  for (OpOperand& use : llvm::make_early_inc_range(weight->getUses())) {
    if (use.getOwner() == out) continue;
    auto reader = dyn_cast<ReproOp>(use.getOwner());
    const bool narrow = element_of(weight.getOut()).isBF16() || element_of(weight.getOut()).isF16();
    if (narrow && !wide && reader && reader.widens(use.getOperandNumber()))
      wide = make_op(build, weight.getLoc(), CastOp::getOperationName(), out->getResult(0), {},
                     tensor_of(shape_of(shape), build.getF32Type()))
                 ->getResult(0);
    use.set(narrow && reader && reader.widens(use.getOperandNumber()) ? wide : out->getResult(0));
  }
}

struct Cut {
  int64_t start = 0, step = 1;
  Extent size;
  std::optional<Polynomial> from = {};  // instead of a start that is no constant from either end, with a
  int64_t stride = 1;                   // instead of a step
};

// A bound that counts from the end, whatever the sizes are.
bool from_end(const Polynomial& bound) {
  const std::optional<Polynomial> back = difference(-1, bound);
  return back && back->never_negative();
}
// One that counts from the end or is 0: ONNX means different places.
bool end_or_begin(const Polynomial& bound) {
  const std::optional<Polynomial> back = product(bound, -1);
  return !bound.constant() && back && back->never_negative() && !from_end(bound);
}

// A bound within a dimension of n, as ONNX clamps it.
std::optional<Polynomial> clamped(const Polynomial& n, const Polynomial& bound) {
  const std::optional<int64_t> number = bound.constant();
  if (sum(n, bound) == Polynomial(0)) return 0;
  if (!number && from_end(bound)) {
    const std::optional<Polynomial> end = product(bound, -1), back = end ? least(n, *end) : end;
    return back ? difference(n, *back) : back;
  }
  if (!number || *number >= 0) return number && *number >= kFar ? n : least(bound, n);
  const std::optional<Polynomial> back = *number <= -kFar ? n : least(n, -*number);
  return back ? difference(n, *back) : back;
}

// Of an open dimension, or with open bounds. If values decide the dimension, bounds are clamped as ONNX does it (`clamps`); otherwise the
// kernel checks that they lie inside, and what ONNX would clamp is refused there.
Result<Cut> open_cut(const Extent& n, const Polynomial& start, const Polynomial& end, int64_t step,
                     bool clamps) {
  const std::optional<int64_t> first = start.constant(), last = end.constant();
  if (step == -1 && first && (*first == -1 || *first >= kFar) && last && *last <= -kFar)
    return Cut{-1, -1, n};
  if (step < 1)
    return not_covered("of dimension " + text_of(n) + " covered are steps forwards, and its reverse");
  const std::optional<Polynomial> size = polynomial_of(n);
  if (!size) return not_covered("a dimension is unknown");
  std::optional<Polynomial> from = start, to = end;
  if (first && *first < 0) from = *first <= -kFar ? Polynomial(0) : sum(*size, *first);
  if (last) to = *last >= kFar ? *size : *last < 0 ? sum(*size, *last) : end;
  if (!first && from_end(start)) from = sum(*size, start);
  if (!last && from_end(end)) to = sum(*size, end);
  if (sum(*size, start) == Polynomial(0)) from = 0;  // the last n of n
  for (std::optional<Polynomial>* bound : {&from, &to})
    if (*bound && (*bound)->constant().value_or(0) < 0) *bound = Polynomial(0);
  std::optional<Polynomial> length = from && to ? difference(*to, *from) : from;
  if (clamps) {  // where it can be said
    const std::optional<Polynomial> low = clamped(*size, start), high = clamped(*size, end);
    const std::optional<Polynomial> none = low && high ? least(*low, *high) : std::nullopt;
    if (const auto some = none ? difference(*high, *none) : none) from = low, to = high, length = some;
  }
  const std::optional<Polynomial> behind = from ? difference(*size, *from) : from;
  if (!length || !behind) return not_covered("bounds " + start.text() + " and " + end.text());
  if (step == 1 && *length == *size && *from == 0) return Cut{0, 1, n};
  if (length->constant().value_or(0) < 0) {
    for (const Polynomial& bound : {start, end})  // one that may be below 0 may count from the end
      if (!bound.constant() && !bound.never_negative() && !from_end(bound))
        return not_covered("bounds " + start.text() + " and " + end.text());
    return Cut{0, 1, Extent::of(0)};
  }
  if (step > 1) {
    const std::optional<Polynomial> up = sum(*length, step - 1), count = up ? floor_quotient(*up, step) : up;
    if (!count) return not_covered("a step of " + std::to_string(step) + " along " + length->text());
    return from->constant() ? Cut{*from->constant(), step, Extent::of(*count)}
                            : Cut{0, 1, Extent::of(*count), *from, step};
  }
  if (from->constant()) return Cut{*from->constant(), 1, Extent::of(*length)};
  if (behind->constant().value_or(0) > 0) return Cut{-*behind->constant(), 1, Extent::of(*length)};
  return Cut{0, 1, Extent::of(*length), *from};
}
Result<Cut> cut_of(const Extent& n, const Polynomial& first, const Polynomial& last, int64_t step,
                   bool clamps = false) {
  if (step == 0) return bad_input("a step of 0");
  if (!n.constant() || !first.constant() || !last.constant()) return open_cut(n, first, last, step, clamps);
  int64_t start = *first.constant(), end = *last.constant();
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n.value : n.value - 1;
  auto place = [&](int64_t at, int64_t least) { return std::clamp(at < 0 ? at + n.value : at, least, high); };
  start = place(start, 0), end = place(end, low);
  using Wide = __int128;
  Wide span = step > 0 ? Wide{end} - start : Wide{start} - end, stride = step > 0 ? Wide{step} : -Wide{step};
  int64_t size = span > 0 ? static_cast<int64_t>((span + stride - 1) / stride) : 0;
  return Cut{size ? start : 0, size > 1 ? step : 1, Extent::of(size)};
}

Result<Value> sliced(Node& node, const std::vector<Cut>& cuts) {
  Value x = node.in(0);
  const Type element = element_of(x);
  const bool narrow = element.isF16() || element.isBF16();  // would be widened: their bits are what is taken
  const auto as = [&](Type type) {
    return node.make<BitcastOp>(x, {}, tensor_of(shape_of(x.getType()), type));
  };
  const bool computed = llvm::any_of(cuts, [](const Cut& cut) { return cut.from.has_value(); });
  if (computed && narrow) {
    INVAR_TRY(x, as(node.build().getIntegerType(16)));
  }
  // Starts that are computed: indices that count from there.
  for (size_t d = 0; d < cuts.size(); ++d) {
    if (!cuts[d].from) continue;
    INVAR_TRY(const Value first, counted_up_to(node, *cuts[d].from));
    INVAR_TRY(Value places, node.make<IotaOp>({first, node.sizes(Polynomial(cuts[d].stride), {})}, {},
                                              tensor_of({cuts[d].size}, node.build().getI64Type())));
    INVAR_TRY(x, node.make<GatherOp>({x, places}, node.attr("axis", static_cast<int64_t>(d))));
  }
  if (computed && narrow) {
    INVAR_TRY(x, as(element));
  }
  std::vector<int64_t> starts, steps;
  Shape shape;
  bool whole = true;
  const Shape from = shape_of(x.getType());
  for (size_t d = 0; d < cuts.size(); ++d) {
    starts.push_back(cuts[d].start), steps.push_back(cuts[d].step), shape.push_back(cuts[d].size);
    whole &= cuts[d].start == 0 && cuts[d].step == 1 && cuts[d].size == from[d];
  }
  if (whole) return x;
  return node.make<SliceOp>(x,
                            {node.attr("starts", llvm::ArrayRef<int64_t>(starts)),
                             node.attr("steps", llvm::ArrayRef<int64_t>(steps))},
                            tensor_of(shape, element_of(x)));
}
std::vector<Cut> all_of(const Shape& shape) {
  std::vector<Cut> cuts;
  for (const Extent& e : shape) cuts.push_back({0, 1, e});
  return cuts;
}

// Starts and ends of which nothing is known: clamped and counted when the program runs, elements gathered.
Status slice_at_run_time(Node& node, const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  const Shape from = node.shape(0);
  const auto count = static_cast<int64_t>(axes.size());
  std::vector<Polynomial> lengths;
  std::vector<int64_t> low, past, stride, rounds;  // a start is in [0, n - past], an end in [low, n - past]
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, Node::axis(axes[i], from.size()));
    const std::optional<Polynomial> n = polynomial_of(from[static_cast<size_t>(axis)]);
    if (!n) return not_covered("a dimension is unknown");
    if (steps[i] == 0 || steps[i] == INT64_MIN) return bad_input("a step of " + std::to_string(steps[i]));
    lengths.push_back(*n), stride.push_back(steps[i]),
        rounds.push_back(steps[i] > 0 ? steps[i] - 1 : steps[i] + 1);
    low.push_back(steps[i] > 0 ? 0 : -1), past.push_back(steps[i] > 0 ? 0 : 1);
  }
  const Value size = node.sizes(lengths, count), zero = node.constant(Sizes(0));
  INVAR_TRY(const Value high, node.make<SubOp>({size, node.constant(past)}));
  const auto placed = [&](Value at, const Value& least) -> Result<Value> {
    if (!element_of(at).isSignlessInteger(64)) {
      INVAR_TRY(at, node.make<CastOp>(at, {}, tensor_of({Extent::of(count)}, node.build().getI64Type())));
    }
    INVAR_TRY(Value negative, node.make<LessOp>({at, zero}));
    INVAR_TRY(Value from_end, node.make<AddOp>({at, size}));
    INVAR_TRY(at, node.make<WhereOp>({negative, from_end, at}));
    INVAR_TRY(at, node.make<MaxOp>({at, least}));
    return node.make<MinOp>({at, high});
  };
  INVAR_TRY(const Value start, placed(node.in(1), zero));
  INVAR_TRY(const Value end, placed(node.in(2), node.constant(low)));
  INVAR_TRY(Value length, node.make<SubOp>({end, start}));
  INVAR_TRY(length, node.make<AddOp>({length, node.constant(rounds)}));
  INVAR_TRY(length, node.make<DivOp>({length, node.constant(stride)}));
  INVAR_TRY(length, node.make<MaxOp>({length, zero}));
  Value x = node.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, Node::axis(axes[i], from.size()));
    INVAR_TRY(Value first, part(node, start, 0, static_cast<int64_t>(i), 1));
    INVAR_TRY(Value places,
              node.make<IotaOp>({first, node.constant(Sizes(steps[i]))}, {},
                                tensor_of({Extent::of(node.bind(length, static_cast<int64_t>(i)))},
                                          node.build().getI64Type())));
    INVAR_TRY(x, node.make<GatherOp>({x, places}, node.attr("axis", axis)));
  }
  return node.replace(x);
}

// Whether a bound means one of two places: one from the end, or 0. That the last n of n are all is clear.
bool unclear(const Node& node, const std::vector<std::optional<Polynomial>>& starts,
             const std::vector<std::optional<Polynomial>>& ends, const std::vector<int64_t>& axes) {
  const Shape from = node.shape(0);
  for (size_t i = 0; i < starts.size(); ++i) {
    const Result<int64_t> axis = Node::axis(axes.empty() ? static_cast<int64_t>(i) : axes[i], from.size());
    const auto n = axis ? polynomial_of(from[static_cast<size_t>(*axis)]) : std::nullopt;
    if (n && starts[i] && end_or_begin(*starts[i]) && sum(*n, *starts[i]) != Polynomial(0)) return true;
  }
  return llvm::any_of(ends, [](auto& end) { return end && end_or_begin(*end); });
}

Status slice(Node& node) {
  if (node.version() < 10) {
    INVAR_CHECK_OK(node.expect(1, 1, {"starts", "ends", "axes"}));
  } else {
    INVAR_CHECK_OK(node.expect(3, 5, {}));
    INVAR_TRY(const auto starts, node.known_sizes(1));
    INVAR_TRY(const auto ends, node.known_sizes(2));
    const auto open = [](auto& known) {
      return !known.empty() && llvm::none_of(known, [](auto& k) { return k.has_value(); });
    };
    INVAR_TRY(std::vector<int64_t> axes, list_of(node, "axes", 3, 10));
    if ((open(starts) && open(ends)) || unclear(node, starts, ends, axes)) {
      if (starts.size() != ends.size()) return bad_input("starts and ends differ in length");
      INVAR_TRY(std::vector<int64_t> steps, list_of(node, "steps", 4, 10));
      for (size_t i = axes.size(); axes.size() < starts.size() && !node.has(3); ++i)
        axes.push_back(static_cast<int64_t>(i));
      steps.resize(node.has(4) ? steps.size() : starts.size(), 1);
      if (axes.size() != starts.size() || steps.size() != starts.size())
        return bad_input("starts, ends, axes and steps differ in length");
      return slice_at_run_time(node, axes, steps);
    }
  }
  INVAR_TRY(std::vector<Polynomial> starts, sizes_of(node, "starts", 1, 10));
  INVAR_TRY(std::vector<Polynomial> ends, sizes_of(node, "ends", 2, 10));
  INVAR_TRY(std::vector<int64_t> axes, list_of(node, "axes", 3, 10));
  std::vector<int64_t> steps;
  if (node.version() >= 10) {
    INVAR_TRY(steps, list_of(node, "steps", 4, 10));
  }
  const Shape from = node.shape(0);
  if (axes.empty())
    for (size_t d = 0; d < starts.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    return bad_input("starts, ends, axes and steps differ in length");
  std::vector<Cut> cuts = all_of(from);
  std::set<int64_t> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(int64_t axis, Node::axis(axes[i], from.size()));
    if (!seen.insert(axis).second) return bad_input("axis " + std::to_string(axis) + " twice");
    INVAR_TRY(cuts[axis], cut_of(from[axis], starts[i], ends[i], steps[i], node.is_bound(from[axis])));
  }
  INVAR_TRY(Value out, sliced(node, cuts));
  return node.replace(out);
}

Status split(Node& node) {
  const unsigned parts = node.results();
  if (node.version() < 13) {
    INVAR_CHECK_OK(node.expect(1, 1, {"axis", "split"}, parts));
  } else {
    INVAR_CHECK_OK(node.expect(1, 2, {"axis", "num_outputs"}, parts));
  }
  INVAR_TRY(int64_t wanted, node.i("axis", 0));
  const Shape from = node.shape(0);
  INVAR_TRY(int64_t axis, Node::axis(wanted, from.size()));
  INVAR_TRY(std::vector<Polynomial> sizes, sizes_of(node, "split", 1, 13));
  INVAR_TRY(int64_t count, node.i("num_outputs", parts));
  const std::optional<Polynomial> n = polynomial_of(from[axis]);
  if (!n) return not_covered("a dimension is unknown");
  if (sizes.empty()) {
    if (count != parts) return bad_input("num_outputs is not the number of results");
    const std::optional<Polynomial> equal = exact_quotient(*n, parts);
    if (!equal && !n->constant())
      return not_covered("dimension " + n->text() + " cannot be shown to divide into parts");
    if (!equal && node.version() < 18)
      return bad_input(n->text() + " elements do not divide into " + std::to_string(parts) + " parts");
    const int64_t all = n->constant().value_or(0), each = (all + parts - 1) / parts;
    for (int64_t at = 0; sizes.size() < parts; at += each)
      sizes.push_back(equal ? *equal : Polynomial(std::clamp<int64_t>(all - at, 0, each)));
  }
  std::vector<Polynomial> bounds = {0};
  std::optional<Polynomial> total = 0;
  for (const Polynomial& s : sizes) {
    total = sum(*total, s);
    if (total) bounds.push_back(*total);
    if (!total || s.constant().value_or(0) < 0) return bad_input("a part of negative or absurd size");
  }
  if (sizes.size() != parts || (total->constant() && n->constant() && *total != *n))
    return bad_input("the parts do not make up the " + n->text() + " elements of the axis");
  const bool decided =
      *total == *n;  // else by values: what is left for the last part must be as long as it is to be
  if (!decided && !may_be_equal(Extent::of(*total), from[axis]))
    return not_covered("parts of " + total->text() + " elements of an axis of " + n->text());
  if (!decided) bounds.back() = *n;
  for (unsigned i = 0; i < parts; ++i) {
    std::vector<Cut> cuts = all_of(from);
    INVAR_TRY(cuts[axis], cut_of(from[axis], bounds[i], bounds[i + 1], 1));
    INVAR_TRY(Value part, sliced(node, cuts));
    Shape shape = from;
    shape[axis] = Extent::of(sizes[i]);
    INVAR_TRY(part, shaped(node, part, shape));
    node.replace(i, part);
  }
  return {};
}

Status concat(Node& node) {
  SmallVector<Value> operands;
  while (node.has(static_cast<unsigned>(operands.size())))
    operands.push_back(node.in(static_cast<unsigned>(operands.size())));
  INVAR_CHECK_OK(node.expect(1, static_cast<unsigned>(operands.size()), {"axis"}));
  if (!node.attribute("axis")) return bad_input("attribute \"axis\" is missing");
  INVAR_TRY(int64_t wanted, node.i("axis", 0));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  if (operands.size() == 1) return node.replace(operands[0]);
  INVAR_TRY(Value out, node.make<ConcatOp>(operands, node.attr("axis", axis)));
  return node.replace(out);
}

Result<Value> expanded(Node& node, Value x, const Shape& shape) {
  if (shape_of(x.getType()) == shape) return x;
  return node.make<ExpandOp>(x, {}, tensor_of(shape, element_of(x)));
}
Result<Shape> constant_shape(Node& node, unsigned i) {
  INVAR_TRY(std::vector<Polynomial> sizes, node.sizes(i));
  Shape shape;
  for (const Polynomial& s : sizes) {
    if (s.constant().value_or(0) < 0) return bad_input("dimension " + s.text());
    shape.push_back(Extent::of(s));
  }
  return shape;
}

// Values decide what is wanted: the result has the larger of both dimensions, which kernels check to be equal or to come from 1.
Status expand_at_run_time(Node& node, Shape wanted) {
  Shape from = node.shape(0);
  if (wanted.size() < from.size()) wanted.insert(wanted.begin(), from.size() - wanted.size(), Extent::of(1));
  from.insert(from.begin(), wanted.size() - from.size(), Extent::of(1));
  Shape to = from, large = from;
  for (size_t d = 0; d < to.size(); ++d) {
    const bool one = from[d] == Extent::of(1), same = wanted[d] == Extent::of(1) || wanted[d] == from[d];
    if (same) continue;
    large[d] = wanted[d];
    if (!one) {
      const std::optional<Polynomial> a = polynomial_of(from[d]), b = polynomial_of(wanted[d]);
      const std::optional<Polynomial> least = a && b ? smaller(*a, *b) : std::nullopt;
      const std::optional<Polynomial> both = least ? sum(*a, *b) : std::nullopt,
                                      most = both ? difference(*both, *least) : both;
      if (!most) return not_covered("dimensions " + text_of(from[d]) + " and " + text_of(wanted[d]));
      large[d] = Extent::of(*most);
    }
    // A constant stays one.
    if (wanted[d].constant()) large[d] = wanted[d];
    to[d] = from[d].constant() && !one ? from[d] : large[d];
  }
  INVAR_TRY(Value out, expanded(node, node.in(0), large));
  INVAR_TRY(out, shaped(node, out, to));
  return node.replace(out);
}

Status expand(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(Shape wanted, constant_shape(node, 1));
  const Shape from = node.shape(0);
  std::optional<Shape> shape = broadcast(from, wanted);
  if (!shape) {
    const Extent one = Extent::of(1);
    for (size_t i = 1; i <= std::min(from.size(), wanted.size()); ++i)
      if (const Extent& a = from[from.size() - i], &b = wanted[wanted.size() - i];
          a.constant() && b.constant() && a != b && a != one && b != one)
        return bad_input("shapes " + text_of(from) + " and " + text_of(wanted) + " do not broadcast");
    return expand_at_run_time(node, wanted);
  }
  INVAR_TRY(Value out, expanded(node, node.in(0), *shape));
  return node.replace(out);
}

}  // namespace
}  // namespace invar::ir
