// Nodes that put elements beside others: Tile, Pad, CenterCropPad.
#pragma once
#include <cmath>

#include "compiler/lowering/builders/builder_dsl.h"
#include "ops/move/import/permute.h"

namespace invar::compiler {
namespace {

template <class Op>
Result<Value> padded(Node& node, Value x, const std::vector<int64_t>& begins, const Shape& shape,
                     Value value = {}) {
  SmallVector<Value> operands = {x};
  if (value) operands.push_back(value);
  if (shape == shape_of(x.getType()) && llvm::all_of(begins, [](int64_t b) { return b == 0; })) return x;
  return node.make<Op>(operands, node.attr("begins", llvm::ArrayRef<int64_t>(begins)),
                       tensor_of(shape, element_of(x)));
}

Status tile(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(std::vector<Polynomial> repeats, node.sizes(1));
  Shape shape = node.shape(0);
  if (repeats.size() != shape.size()) return bad_input("repeats are not one for each dimension");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d].constant().value_or(0) < 0) return bad_input("repeat " + repeats[d].text());
    const std::optional<Polynomial> size = polynomial_of(shape[d]);
    if (!size) return not_covered("a dimension is unknown");
    const std::optional<Polynomial> all = product(*size, repeats[d]);
    if (!all) return not_covered("repeat " + repeats[d].text() + " makes more elements than can be counted");
    shape[d] = Extent::of(*all);
  }
  INVAR_TRY(Value out, padded<PadWrapOp>(node, node.in(0), std::vector<int64_t>(shape.size(), 0), shape));
  return node.replace(out);
}

Result<Value> padded(Node& node, Value x, llvm::StringRef mode, const std::vector<int64_t>& begins,
                     const Shape& shape, Value value) {
  return mode == "constant"  ? padded<PadOp>(node, x, begins, shape, value)
         : mode == "edge"    ? padded<PadEdgeOp>(node, x, begins, shape)
         : mode == "reflect" ? padded<PadReflectOp>(node, x, begins, shape)
         : mode == "wrap"    ? padded<PadWrapOp>(node, x, begins, shape)
                             : not_covered("mode \"" + mode.str() + "\"");
}

// Where operand 0 begins in a padded one of this shape.
struct Padding {
  Shape shape;
  std::vector<int64_t> begins;
  std::vector<Value> computed;  // i64 [1] in the place of a begin; null: none

  explicit Padding(const Shape& x) : shape(x), begins(x.size(), 0), computed(x.size()) {}
};

// Begins that are computed: element i comes from i - begin, gathered from the place that the mode has for it. Beside the others lies
// one more element, of the value, for all places outside.
Result<Value> padded_at_run_time(Node& node, llvm::StringRef mode, const Padding& to, Value value) {
  const Shape from = node.shape(0);
  const bool any = llvm::any_of(to.computed, [](Value v) { return bool(v); });
  if (const Type t = element_of(node.in(0)); any && (t.isBF16() || t.isF16()))
    return not_covered("begins of bf16 or f16 that are computed");
  Formula f(node);
  Shape shape = to.shape;
  std::vector<Value> size(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    if (!to.computed[d]) continue;
    const std::optional<Polynomial> n = polynomial_of(from[d]), more = n ? sum(*n, 1) : n;
    if (!more) return not_covered("a dimension is unknown");
    size[d] = node.sizes(*n, int64_t{1});
    shape[d] = mode == "constant" ? Extent::of(*more) : from[d];
  }
  INVAR_TRY(Value x, padded(node, node.in(0), mode, to.begins, shape, value));
  const Value zero = node.constant(Sizes(0)), one = node.constant(Sizes(1)), two = node.constant(Sizes(2));
  for (size_t d = 0; d < from.size(); ++d) {
    if (!to.computed[d]) continue;
    const Value n = size[d];
    const Value at = f.make<IotaOp>({f.sub(zero, to.computed[d]), one}, {},
                                    tensor_of({to.shape[d]}, node.build().getI64Type()));
    Value place;
    if (mode == "constant") {
      place = f.where(f.less(at, zero), n, f.min(at, n));
    } else if (mode == "edge") {
      place = f.max(f.min(at, f.sub(n, one)), zero);
    } else if (mode == "wrap") {
      place = f.make<ModOp>({at, n});
    } else {
      const Value period = f.max(f.sub(f.mul(n, two), two), one), once = f.make<ModOp>({at, period});
      place = f.min(once, f.sub(period, once));
    }
    x = f.make<GatherOp>({x, place}, node.attr("axis", static_cast<int64_t>(d)));
  }
  INVAR_CHECK_OK(f.status());
  return x;
}

Status pad_at_run_time(Node& node, const std::vector<int64_t>& axes, llvm::StringRef mode, Value value) {
  INVAR_TRY(const auto known, node.known_sizes(1));
  if (known.size() != 2 * axes.size()) return bad_input("pads are not two for each axis");
  Formula f(node);
  const Value zero = node.constant(Sizes(0)), none = node.constant(Sizes(-1));
  Padding to(node.shape(0));
  std::set<int64_t> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, Node::axis(axes[i], to.shape.size()));
    if (!seen.insert(axis).second) return bad_input("axis " + std::to_string(axis) + " twice");
    const auto d = static_cast<size_t>(axis);
    const std::optional<Polynomial> n = polynomial_of(to.shape[d]), begin = known[i],
                                    end = known[i + axes.size()];
    if (!n) return not_covered("a dimension is unknown");
    auto pad = [&](size_t at) { return f.whole(f.cut(node.in(1), 0, static_cast<int64_t>(at), 1)); };
    if (begin && begin->constant()) {
      to.begins[d] = *begin->constant();
    } else {
      to.computed[d] = pad(i);
    }
    if (begin && end) {
      const std::optional<Polynomial> longer = sum(*n, *begin), all = longer ? sum(*longer, *end) : longer;
      const std::string pads_of = "pads " + begin->text() + " and " + end->text();
      if (!all) return not_covered(pads_of + ": more elements than can be counted");
      if (all->constant().value_or(0) < 0) return bad_input(pads_of);
      to.shape[d] = Extent::of(*all);
      continue;
    }
    // A pad below zero takes away no more than there is.
    const Value size = node.sizes(*n, int64_t{1}), first = f.add(size, pad(i)), last = pad(i + axes.size());
    const Value less = f.less(f.min(first, f.add(size, last)), zero),
                all = f.where(less, none, f.add(first, last));
    INVAR_CHECK_OK(f.status());
    to.shape[d] = Extent::of(node.bind(all, 0));
  }
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(Value out, padded_at_run_time(node, mode, to, value));
  return node.replace(out);
}

Status pad(Node& node) {
  Value value;
  if (node.version() < 11) {
    INVAR_CHECK_OK(node.expect(1, 1, {"mode", "pads", "value"}));
    INVAR_TRY(float fill, node.f("value", 0));
    if (fill != 0 || std::signbit(fill)) value = node.constant(fill);
  } else {
    INVAR_CHECK_OK(node.expect(2, node.version() < 18 ? 3 : 4, {"mode"}));
    if (node.has(2)) value = node.in(2);
  }
  std::vector<int64_t> axes;
  if (node.has(3)) {
    INVAR_TRY(axes, node.constants(3));
  }
  Shape shape = node.shape(0);
  if (!node.has(3))
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  std::string mode = "constant";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("mode"))) mode = given.str();
  if (node.version() >= 11 && !node.bytes(1)) return pad_at_run_time(node, axes, mode, value);
  INVAR_TRY(std::vector<int64_t> pads, list_of(node, "pads", 1, 11));
  if (pads.size() != 2 * axes.size()) return bad_input("pads are not two for each axis");
  std::vector<int64_t> begins(shape.size(), 0);
  std::vector<Cut> kept = all_of(shape);
  std::set<int64_t> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(int64_t axis, Node::axis(axes[i], shape.size()));
    if (!seen.insert(axis).second) return bad_input("axis " + std::to_string(axis) + " twice");
    int64_t begin = pads[i], end = pads[i + axes.size()];
    if (begin == 0 && end == 0) continue;
    Extent& e = shape[axis];
    const std::string pads_of =
        "pads " + std::to_string(begin) + " and " + std::to_string(end) + " of axis " + std::to_string(axis);
    std::optional<Polynomial> size = polynomial_of(e);
    if (!size) return not_covered("a dimension is unknown");
    if (!e.constant() &&
        (begin < 0 || end < 0)) {  // first what they take away, of which as much must be there
      if (begin < -kFar || end < -kFar) return bad_input(pads_of);
      const int64_t start = std::max<int64_t>(-begin, 0);
      size = sum(*size, std::min<int64_t>(end, 0) - start);
      if (!size) return bad_input(pads_of);
      kept[static_cast<size_t>(axis)] = {start, 1, Extent::of(*size)};
      begin = std::max<int64_t>(begin, 0), end = std::max<int64_t>(end, 0);
    }
    const std::optional<Polynomial> longer = sum(*size, begin);
    const std::optional<Polynomial> all = longer ? sum(*longer, end) : longer;
    if (!all) return not_covered(pads_of + ": more elements than can be counted");
    if (all->constant().value_or(0) < 0 || (e.constant() && (begin < -e.value || end < -e.value)))
      return bad_input(pads_of);
    e = Extent::of(*all);
    begins[axis] = begin;
  }
  INVAR_TRY(Value x, sliced(node, kept));
  INVAR_TRY(Value out, padded(node, x, mode, begins, shape, value));
  return node.replace(out);
}

// As many elements around the middle where sizes or dimensions are not constants: from half of what is missing, towards zero.
Status center_at_run_time(Node& node, const std::vector<int64_t>& axes) {
  INVAR_TRY(const std::vector<Polynomial> sizes, node.sizes(1));
  if (axes.size() != sizes.size()) return bad_input("operand 1 is not one size for each axis");
  Formula f(node);
  Padding to(node.shape(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, Node::axis(axes[i], to.shape.size()));
    const auto d = static_cast<size_t>(axis);
    const std::optional<Polynomial> n = polynomial_of(to.shape[d]),
                                    missing = n ? difference(sizes[i], *n) : n;
    if (!missing) return not_covered("dimension " + text_of(to.shape[d]) + " cropped or padded");
    if (sizes[i].constant().value_or(0) < 0) return bad_input("size " + sizes[i].text());
    if (const std::optional<int64_t> all = missing->constant())
      to.begins[d] = *all / 2;
    else
      to.computed[d] = f.div(node.sizes(*missing, int64_t{1}), node.constant(Sizes(2)));
    to.shape[d] = Extent::of(sizes[i]);
  }
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(Value out, padded_at_run_time(node, "constant", to, {}));
  return node.replace(out);
}

// As many elements around the middle; where there are fewer, zeros on both sides, the odd one behind.
Status center_crop_pad(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axes"}));
  INVAR_TRY(std::vector<int64_t> axes, node.ints("axes"));
  Shape shape = node.shape(0);
  if (!node.attribute("axes"))
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (!node.bytes(1) || !llvm::all_of(shape, [](const Extent& e) { return e.constant(); }))
    return center_at_run_time(node, axes);
  INVAR_TRY(std::vector<int64_t> sizes, node.constants(1));
  if (axes.size() != sizes.size()) return bad_input("operand 1 is not one size for each axis");
  std::vector<int64_t> begins(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, Node::axis(axes[i], shape.size()));
    Extent& e = shape[static_cast<size_t>(axis)];
    if (!e.constant()) return not_covered("dimension " + text_of(e) + " cropped or padded");
    if (sizes[i] < 0) return bad_input("size " + std::to_string(sizes[i]));
    // floor((size - N) / 2) in front where it grows, floor((N - size) / 2) less where it shrinks.
    begins[static_cast<size_t>(axis)] =
        sizes[i] >= e.value ? (sizes[i] - e.value) / 2 : -((e.value - sizes[i]) / 2);
    e = Extent::of(sizes[i]);
  }
  INVAR_TRY(Value out, padded<PadOp>(node, node.in(0), begins, shape));
  return node.replace(out);
}

}  // namespace
}  // namespace invar::compiler
