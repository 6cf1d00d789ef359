// Slice and Split, and how nodes give lists and numbers.
#pragma once
#include <algorithm>

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

constexpr int64_t kFar = INT32_MAX;                  // a bound that exporters write for "to the end"
constexpr int64_t kMostElements = int64_t{1} << 40;  // no dimension has more

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

struct Cut {
  int64_t start = 0, step = 1;
  Extent size;
  std::optional<Polynomial> from = {};  // instead of a start that is no constant from either end, with a
  int64_t stride = 1;                   // instead of a step
};

// What a bound names: a place so far from the begin, or from the end.
struct Place {
  Polynomial at;
  bool back = false, sure = true;  // sure: `at` is never negative
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

Place place_of(const Polynomial& n, const Polynomial& bound) {
  if (const std::optional<int64_t> c = bound.constant()) {
    if (*c >= kFar) return {0, true};
    if (*c <= -kFar) return {0};
    return *c < 0 ? Place{-*c, true} : Place{*c};
  }
  if (sum(n, bound) == Polynomial(0)) return {0};               // the last n of n
  if (difference(n, bound) == Polynomial(1)) return {1, true};  // n - 1: for an n of 0, too
  if (from_end(bound))
    if (const std::optional<Polynomial> back = product(bound, -1)) return {*back, true};
  return {bound, false, bound.never_negative()};
}

// From a place that lies inside where there are elements at all.
Cut cut_from(const Polynomial& n, const Place& start, int64_t step, const Extent& size) {
  const std::optional<int64_t> at = start.at.constant();
  if (at && !start.back) return {*at, step, size};
  if (at) return {-*at, step, size};
  const std::optional<Polynomial> other = difference(n, start.at);
  if (other && other->constant().value_or(0) > 0 && !start.back) return {-*other->constant(), step, size};
  return {0, 1, size, start.back ? other : start.at, step};
}

// Elements from one place up to another, both inside (kernels check it).
Result<Cut> inside(const Extent& n, const Polynomial& from, const Polynomial& to) {
  const std::optional<Polynomial> size = polynomial_of(n), length = difference(to, from);
  if (!size || !length) return not_covered("bounds " + from.text() + " and " + to.text());
  if (length->constant().value_or(0) < 0) return bad_input("bounds " + from.text() + " and " + to.text());
  if (*length == 0) return Cut{0, 1, Extent::of(0)};
  return cut_from(*size, {from}, 1, Extent::of(*length));
}

// a - b; 0 where that is below 0.
std::optional<Polynomial> left_of(const Polynomial& a, const Polynomial& b) {
  const std::optional<Polynomial> both = least(a, b);
  return both ? difference(a, *both) : both;
}

// How many elements lie between two places in a dimension of n, as ONNX clamps them. What is not sure is taken to be no less than 0:
// where it is, the length or the start is below 0 as well.
std::optional<Polynomial> length_between(const Polynomial& n, const Place& start, const Place& end) {
  const std::optional<Polynomial> cut = sum(start.at, end.at);
  if (!start.back && end.back) return cut ? left_of(n, *cut) : cut;
  const std::optional<Polynomial> first = least(n, start.at), last = least(n, end.at);
  const std::optional<Polynomial> low = first && start.back ? difference(n, *first) : first;
  if (!low || !last) return std::nullopt;
  if (start.back && end.back) return left_of(*first, *last);
  return end.sure ? left_of(*last, *low) : difference(*last, *low);
}

// The same where nothing is clamped, and which is no more than which then.
std::optional<Unclamped> unclamped(const Polynomial& n, const Place& start, const Place& end) {
  const std::optional<Polynomial> cut = sum(start.at, end.at);
  const std::optional<Polynomial> length = !cut || (start.back && !end.back) ? std::nullopt
                                           : start.back                      ? difference(start.at, end.at)
                                           : end.back                        ? difference(n, *cut)
                                                                             : difference(end.at, start.at);
  if (!length) return std::nullopt;
  const Polynomial lower = start.back ? start.at : end.back ? *cut : end.at;
  // The only element of an open dimension may be repeated to that length: nothing follows of what is.
  const bool repeats = !n.constant() && start.back == end.back && *length != 1;
  return Unclamped{*length, lower, repeats ? lower : n};
}

// Whether a dimension of the one element that a slice takes is dropped: it must be there, and branches may depend on that.
bool drops(const Node& node) {
  return llvm::any_of(node.out(0).getUsers(), [](Operation* op) {
    auto reader = dyn_cast<NodeOp>(op);
    return reader && reader.getOpType() == "Squeeze";
  });
}

Result<Cut> forwards(Node& node, const Polynomial& n, const Place& start, const Place& end, int64_t step) {
  const std::optional<Polynomial> length = length_between(n, start, end);
  if (!length) return not_covered("bounds of " + n.text());
  if (*length == 0 || length->constant().value_or(0) < 0) {
    if (!start.sure || !end.sure)  // one that may be below 0 may count from the end
      return not_covered("bounds of " + n.text() + " that may be below 0");
    return Cut{0, 1, Extent::of(0)};
  }
  std::optional<Polynomial> taken = length;
  if (const std::optional<Unclamped> all = unclamped(n, start, end)) {
    node.is_clamped(*length, *all);
    if (all->length == 1 && drops(node)) taken = 1;
  }
  const std::optional<Polynomial> up = sum(*taken, step - 1), count = up ? quotient(*up, step) : up;
  if (!count) return not_covered("a step of " + std::to_string(step) + " along " + length->text());
  const Extent size = Extent::of(*count);
  // The last of all, where there is one, and the last of at least as many, are so far from the end.
  const std::optional<Polynomial> last = least(n, start.at);
  if (!start.back || start.at == 1 || last == start.at) return cut_from(n, start, step, size);
  const std::optional<Polynomial> from = last ? difference(n, *last) : last;
  if (!from) return not_covered("bounds of " + n.text());
  return cut_from(n, {*from}, step, size);
}

// Places are counted from the one before the first element: that is where an end may lie, a start not.
Result<Cut> backwards(const Polynomial& n, const Polynomial& first, const Polynomial& last, int64_t step) {
  const Place start = place_of(n, first), end = place_of(n, last);
  const bool whole = last.constant().value_or(0) <= -kFar;
  const auto behind = [&n](const Place& p, const std::optional<Polynomial>& most) {
    const std::optional<Polynomial> at = sum(p.at, p.back ? -1 : 1);
    const std::optional<Polynomial> there = at && most ? least(p.back ? *most : n, *at) : at;
    return there && p.back ? difference(n, *there) : there;
  };
  const auto placed = [&](const Place& p, const std::optional<Polynomial>& most) {
    return p.back && p.at == 0 ? std::optional(n) : behind(p, most);
  };
  const std::optional<Polynomial> before = left_of(n, 1), from = placed(start, before),
                                  to = whole ? Polynomial(0) : placed(end, n);
  const std::optional<Polynomial> length = from && to ? left_of(*from, *to) : from;
  const std::optional<Polynomial> up = length ? sum(*length, -step - 1) : length,
                                  count = up ? quotient(*up, -step) : up;
  const std::optional<Polynomial> at = from ? left_of(*from, 1) : from;
  if (!count || !at) return not_covered("bounds " + first.text() + " and " + last.text());
  if (*count == 0) return Cut{0, 1, Extent::of(0)};
  if (*from == n) return Cut{-1, step, Extent::of(*count)};
  return cut_from(n, {*at}, step, Extent::of(*count));
}

Result<Cut> cut_of(Node& node, const Extent& n, const Polynomial& first, const Polynomial& last,
                   int64_t step) {
  if (step == 0) return bad_input("a step of 0");
  if (!n.constant() || !first.constant() || !last.constant()) {
    const std::optional<Polynomial> size = polynomial_of(n);
    if (!size) return not_covered("a dimension is unknown");
    if (step < 0) return backwards(*size, first, last, step);
    const Place start = place_of(*size, first), end = place_of(*size, last);
    return forwards(node, *size, start, end, step);
  }
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
    if (steps[i] == 0) return bad_input("a step of 0");
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
    INVAR_TRY(at, node.make<MinOp>({at, node.constant(Sizes(kMostElements))}));
    INVAR_TRY(at, node.make<MaxOp>({at, node.constant(Sizes(-2 * kMostElements))}));
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

// Whether a bound means one of two places, one from the end or one from the begin.
bool unclear(const Polynomial& n, const Polynomial& bound) {
  return (end_or_begin(bound) && sum(n, bound) != Polynomial(0)) || !place_of(n, bound).sure;
}

Status slice(Node& node) {
  std::vector<int64_t> axes, steps;
  if (node.version() < 10) {
    INVAR_CHECK_OK(node.expect(1, 1, {"starts", "ends", "axes"}));
  } else {
    INVAR_CHECK_OK(node.expect(3, 5, {}));
    INVAR_TRY(steps, list_of(node, "steps", 4, 10));
  }
  INVAR_TRY(axes, list_of(node, "axes", 3, 10));
  const Shape from = node.shape(0);
  std::vector<std::optional<Polynomial>> known[2];
  for (unsigned i : {0, 1}) {
    if (node.version() < 10) {
      INVAR_TRY(const std::vector<int64_t> list, node.ints(i ? "ends" : "starts"));
      known[i].assign(list.begin(), list.end());
    } else {
      INVAR_TRY(known[i], node.known_sizes(i + 1));
    }
  }
  const size_t count = known[0].size();
  for (size_t d = 0; axes.size() < count && d == axes.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (steps.empty()) steps.assign(count, 1);
  if (known[1].size() != count || axes.size() != count || steps.size() != count)
    return bad_input("starts, ends, axes and steps differ in length");
  bool computed = false;
  for (size_t i = 0; i < count; ++i) {
    INVAR_TRY(axes[i], Node::axis(axes[i], from.size()));
    const std::optional<Polynomial> n = polynomial_of(from[static_cast<size_t>(axes[i])]);
    if (!n) return not_covered("a dimension is unknown");
    for (const auto& bounds : known) computed |= !bounds[i] || unclear(*n, *bounds[i]);
    steps[i] = std::clamp(steps[i], -kMostElements, kMostElements);  // as far as any
  }
  if (computed && node.version() >= 10) return slice_at_run_time(node, axes, steps);
  INVAR_TRY(std::vector<Polynomial> starts, sizes_of(node, "starts", 1, 10));
  INVAR_TRY(std::vector<Polynomial> ends, sizes_of(node, "ends", 2, 10));
  std::vector<Cut> cuts = all_of(from);
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (!seen.insert(axes[i]).second) return bad_input("axis " + std::to_string(axes[i]) + " twice");
    INVAR_TRY(cuts[d], cut_of(node, from[d], starts[i], ends[i], steps[i]));
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
    if (s.constant().value_or(0) < 0) return bad_input("a part of negative size");
    if (!total) return not_covered("more elements than can be counted");
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
    INVAR_TRY(cuts[axis], inside(from[axis], bounds[i], bounds[i + 1]));
    INVAR_TRY(Value part, sliced(node, cuts));
    Shape shape = from;
    shape[axis] = Extent::of(sizes[i]);
    INVAR_TRY(part, shaped(node, part, shape));
    node.replace(i, part);
  }
  return {};
}

}  // namespace
}  // namespace invar::compiler
