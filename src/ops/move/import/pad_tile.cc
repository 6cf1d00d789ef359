// Lowering of Tile, Pad and CenterCropPad.
#include <cmath>
#include <cstring>

#include "compiler/room_api.h"
#include "ops/move/import/rules.h"

namespace invar::compiler {
namespace {

// The one element of a constant operand of f32, f64 or integers.
Result<int64_t> whole_number(NodeView& node, unsigned i) {
  if (!isa<FloatType>(element_of(node.in(i)))) return constant_int(node, i, 0);
  const std::optional<std::string> bytes = node.constant_bytes(i);
  if (!bytes) return node.not_constant(i);
  double number = 0.5;
  if (float narrow; bytes->size() == sizeof narrow) {
    std::memcpy(&narrow, bytes->data(), sizeof narrow);
    number = narrow;
  } else if (bytes->size() == sizeof number) {
    std::memcpy(&number, bytes->data(), sizeof number);
  }
  if (!(std::fabs(number) <= INT32_MAX) || number != std::trunc(number))
    return bad_input("operand " + std::to_string(i) + " is not one whole number");
  return static_cast<int64_t>(number);
}

template <class Op>
Result<Value> make_pad(NodeView& node, Value x, const std::vector<int64_t>& begins, const Shape& shape,
                       Value value = {}) {
  SmallVector<Value> operands = {x};
  if (value) operands.push_back(value);
  if (shape == shape_of(x.getType()) && llvm::all_of(begins, [](int64_t b) { return b == 0; })) return x;
  return node.make<Op>(operands, node.attr("begins", Ints(begins)), tensor_of(shape, element_of(x)));
}

// Counts repeats of each dimension. Before opset 6 that is one dimension, and both numbers are
// operands of the data's type.
Result<std::vector<DimExpr>> tile_repeats(NodeView& node) {
  if (node.version() >= 6) {
    INVAR_CHECK_OK(node.expect(2, 2, {}));
    return node.dim_exprs(1);
  }
  INVAR_CHECK_OK(node.expect(3, 3, {}));
  const size_t rank = node.shape(0).size();
  int64_t number[2];
  for (unsigned i : {0U, 1U}) {
    INVAR_TRY(number[i], whole_number(node, 1 + i));
  }
  INVAR_TRY(const int64_t axis, NodeView::normalize_axis(number[1], rank));
  std::vector<DimExpr> repeats(rank, DimExpr(1));
  repeats[static_cast<size_t>(axis)] = DimExpr(number[0]);
  return repeats;
}

Status tile(NodeView& node) {
  INVAR_TRY(std::vector<DimExpr> repeats, tile_repeats(node));
  Shape shape = node.shape(0);
  if (repeats.size() != shape.size()) return bad_input("repeats are not one for each dimension");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d].constant().value_or(0) < 0) return bad_input("repeat " + text_of(repeats[d]));
    const std::optional<DimExpr> size = dim_expr_of(shape[d]);
    if (!size) return not_covered("a dimension is unknown");
    const std::optional<DimExpr> all = product(*size, repeats[d]);
    if (!all)
      return not_covered("repeat " + text_of(repeats[d]) + " makes more elements than can be counted");
    shape[d] = Dim::of(*all);
  }
  INVAR_TRY(Value out, make_pad<PadWrapOp>(node, node.in(0), std::vector<int64_t>(shape.size(), 0), shape));
  return node.replace(out);
}

Result<Value> make_pad(NodeView& node, Value x, llvm::StringRef mode, const std::vector<int64_t>& begins,
                       const Shape& shape, Value value) {
  return mode == "constant"  ? make_pad<PadOp>(node, x, begins, shape, value)
         : mode == "edge"    ? make_pad<PadEdgeOp>(node, x, begins, shape)
         : mode == "reflect" ? make_pad<PadReflectOp>(node, x, begins, shape)
         : mode == "wrap"    ? make_pad<PadWrapOp>(node, x, begins, shape)
                             : not_covered("mode \"" + mode.str() + "\"");
}

// The shape of a padded operand 0 and the offsets at which it begins.
struct PadTarget {
  Shape shape;
  std::vector<int64_t> begins;
  std::vector<Value> computed;  // i64 [1] instead of a constant begin; null if there is none

  explicit PadTarget(const Shape& x) : shape(x), begins(x.size(), 0), computed(x.size()) {}
};

// Pads with computed begins: element i gathers index i - begin, mapped by the mode. Constant mode
// first appends one element of the pad value, which all indices outside read.
Result<Value> pad_dynamic_begins(NodeView& node, llvm::StringRef mode, const PadTarget& to, Value value) {
  const Shape from = node.shape(0);
  const bool any = llvm::any_of(to.computed, [](Value v) { return bool(v); });
  if (const Type t = element_of(node.in(0)); any && (t.isBF16() || t.isF16()))
    return not_covered("begins of bf16 or f16 that are computed");
  ExprBuilder f(node);
  Shape shape = to.shape;
  std::vector<Value> size(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    if (!to.computed[d]) continue;
    const std::optional<DimExpr> n = dim_expr_of(from[d]), more = n ? sum(*n, 1) : n;
    if (!more) return not_covered("a dimension is unknown");
    size[d] = node.size_tensor(*n, int64_t{1});
    shape[d] = mode == "constant" ? Dim::of(*more) : from[d];
  }
  INVAR_TRY(Value x, make_pad(node, node.in(0), mode, to.begins, shape, value));
  const Value zero = node.constant(Ints(0)), one = node.constant(Ints(1)), two = node.constant(Ints(2));
  for (size_t d = 0; d < from.size(); ++d) {
    if (!to.computed[d]) continue;
    const Value n = size[d];
    const Value at = f.make<IotaOp>({f.sub(zero, to.computed[d]), one}, {},
                                    tensor_of({to.shape[d]}, node.builder().getI64Type()));
    Value source;
    if (mode == "constant") {
      source = f.where(f.less(at, zero), n, f.min(at, n));
    } else if (mode == "edge") {
      source = f.max(f.min(at, f.sub(n, one)), zero);
    } else if (mode == "wrap") {
      source = f.make<ModOp>({at, n});
    } else {
      const Value period = f.max(f.sub(f.mul(n, two), two), one), once = f.make<ModOp>({at, period});
      source = f.min(once, f.sub(period, once));
    }
    x = f.make<GatherOp>({x, source}, node.attr("axis", static_cast<int64_t>(d)));
  }
  INVAR_CHECK_OK(f.status());
  return x;
}

Status pad_dynamic(NodeView& node, const std::vector<int64_t>& axes, llvm::StringRef mode, Value value) {
  INVAR_TRY(const auto known, node.known_dim_exprs(1));
  if (known.size() != 2 * axes.size()) return bad_input("pads are not two for each axis");
  ExprBuilder f(node);
  const Value zero = node.constant(Ints(0)), none = node.constant(Ints(-1));
  PadTarget to(node.shape(0));
  std::set<int64_t> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, NodeView::normalize_axis(axes[i], to.shape.size()));
    if (!seen.insert(axis).second) return bad_input("axis " + std::to_string(axis) + " twice");
    const auto d = static_cast<size_t>(axis);
    const std::optional<DimExpr> n = dim_expr_of(to.shape[d]), begin = known[i], end = known[i + axes.size()];
    if (!n) return not_covered("a dimension is unknown");
    auto pad = [&](size_t at) { return f.to_i64(f.slice(node.in(1), 0, static_cast<int64_t>(at), 1)); };
    if (begin && begin->constant()) {
      to.begins[d] = *begin->constant();
    } else {
      to.computed[d] = pad(i);
    }
    if (begin && end) {
      const std::optional<DimExpr> longer = sum(*n, *begin), all = longer ? sum(*longer, *end) : longer;
      const DimText pads_of = "pads " + text_of(*begin) + " and " + text_of(*end);
      if (!all) return not_covered(pads_of + ": more elements than can be counted");
      if (all->constant().value_or(0) < 0) return bad_input(pads_of);
      to.shape[d] = Dim::of(*all);
      continue;
    }
    // A negative pad may not remove more elements than there are.
    const Value size = node.size_tensor(*n, int64_t{1}), first = f.add(size, pad(i)),
                last = pad(i + axes.size());
    const Value less = f.less(f.min(first, f.add(size, last)), zero),
                all = f.where(less, none, f.add(first, last));
    INVAR_CHECK_OK(f.status());
    to.shape[d] = Dim::of(node.bind_dim(all, 0));
  }
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(Value out, pad_dynamic_begins(node, mode, to, value));
  return node.replace(out);
}

Status pad(NodeView& node) {
  Value value;
  const char* name = node.version() < 2 ? "paddings" : "pads";
  if (node.version() < 11) {
    INVAR_CHECK_OK(node.expect(1, 1, {"mode", name, "value"}));
    INVAR_TRY(float fill, node.float_attr("value", 0));
    if (fill != 0 || std::signbit(fill)) value = node.constant(fill);
  } else {
    INVAR_CHECK_OK(node.expect(2, node.version() < 18 ? 3 : 4, {"mode"}));
    if (node.has(2)) value = node.in(2);
  }
  std::vector<int64_t> axes;
  if (node.has(3)) {
    INVAR_TRY(axes, node.constant_ints(3));
  }
  Shape shape = node.shape(0);
  if (!node.has(3))
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  std::string mode = "constant";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("mode"))) mode = given.str();
  if (node.version() >= 11 && !node.constant_bytes(1)) return pad_dynamic(node, axes, mode, value);
  INVAR_TRY(std::vector<int64_t> pads, ints_from_attr_or_operand(node, name, 1, 11));
  if (pads.size() != 2 * axes.size()) return bad_input("pads are not two for each axis");
  std::vector<int64_t> begins(shape.size(), 0);
  std::vector<SliceRange> kept = full_ranges(shape);
  std::set<int64_t> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(int64_t axis, NodeView::normalize_axis(axes[i], shape.size()));
    if (!seen.insert(axis).second) return bad_input("axis " + std::to_string(axis) + " twice");
    int64_t begin = pads[i], end = pads[i + axes.size()];
    if (begin == 0 && end == 0) continue;
    Dim& e = shape[axis];
    const std::string pads_of =
        "pads " + std::to_string(begin) + " and " + std::to_string(end) + " of axis " + std::to_string(axis);
    std::optional<DimExpr> size = dim_expr_of(e);
    if (!size) return not_covered("a dimension is unknown");
    if (!e.constant() &&
        (begin < 0 || end < 0)) {  // negative pads slice first, so that kernels check the length
      if (begin < -kToEnd || end < -kToEnd) return bad_input(pads_of);
      const int64_t start = std::max<int64_t>(-begin, 0);
      size = sum(*size, std::min<int64_t>(end, 0) - start);
      if (!size) return bad_input(pads_of);
      kept[static_cast<size_t>(axis)] = {start, 1, Dim::of(*size)};
      begin = std::max<int64_t>(begin, 0), end = std::max<int64_t>(end, 0);
    }
    const std::optional<DimExpr> longer = sum(*size, begin);
    const std::optional<DimExpr> all = longer ? sum(*longer, end) : longer;
    if (!all) return not_covered(pads_of + ": more elements than can be counted");
    if (all->constant().value_or(0) < 0 || (e.constant() && (begin < -e.value || end < -e.value)))
      return bad_input(pads_of);
    e = Dim::of(*all);
    begins[axis] = begin;
  }
  INVAR_TRY(Value x, slice_ranges(node, kept));
  INVAR_TRY(Value out, make_pad(node, x, mode, begins, shape, value));
  return node.replace(out);
}

// CenterCropPad with symbolic sizes or dimensions: the begin is half of what is missing, rounded
// towards zero.
Status center_crop_pad_dynamic(NodeView& node, const std::vector<int64_t>& axes) {
  INVAR_TRY(const std::vector<DimExpr> sizes, node.dim_exprs(1));
  if (axes.size() != sizes.size()) return bad_input("operand 1 is not one size for each axis");
  ExprBuilder f(node);
  PadTarget to(node.shape(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, NodeView::normalize_axis(axes[i], to.shape.size()));
    const auto d = static_cast<size_t>(axis);
    const std::optional<DimExpr> n = dim_expr_of(to.shape[d]), missing = n ? difference(sizes[i], *n) : n;
    if (!missing) return not_covered("dimension " + text_of(to.shape[d]) + " cropped or padded");
    if (sizes[i].constant().value_or(0) < 0) return bad_input("size " + text_of(sizes[i]));
    if (const std::optional<int64_t> all = missing->constant())
      to.begins[d] = *all / 2;
    else
      to.computed[d] = f.div(node.size_tensor(*missing, int64_t{1}), node.constant(Ints(2)));
    to.shape[d] = Dim::of(sizes[i]);
  }
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(Value out, pad_dynamic_begins(node, "constant", to, {}));
  return node.replace(out);
}

// CenterCropPad crops or pads both ends equally; the odd element goes to the end.
Status center_crop_pad(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axes"}));
  INVAR_TRY(std::vector<int64_t> axes, node.ints_attr("axes"));
  Shape shape = node.shape(0);
  if (!node.attribute("axes"))
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (!node.constant_bytes(1) || !llvm::all_of(shape, [](const Dim& e) { return e.constant(); }))
    return center_crop_pad_dynamic(node, axes);
  INVAR_TRY(std::vector<int64_t> sizes, node.constant_ints(1));
  if (axes.size() != sizes.size()) return bad_input("operand 1 is not one size for each axis");
  std::vector<int64_t> begins(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, NodeView::normalize_axis(axes[i], shape.size()));
    Dim& e = shape[static_cast<size_t>(axis)];
    if (!e.constant()) return not_covered("dimension " + text_of(e) + " cropped or padded");
    if (sizes[i] < 0) return bad_input("size " + std::to_string(sizes[i]));
    // Pads by floor((size - N) / 2) or crops by floor((N - size) / 2) in front.
    begins[static_cast<size_t>(axis)] =
        sizes[i] >= e.value ? (sizes[i] - e.value) / 2 : -((e.value - sizes[i]) / 2);
    e = Dim::of(sizes[i]);
  }
  INVAR_TRY(Value out, make_pad<PadOp>(node, node.in(0), begins, shape));
  return node.replace(out);
}

}  // namespace

void import_move_pads(RuleRegistry& registry) {
  registry.add_rule("Tile", 1, tile);
  registry.add_rule("Pad", 1, pad);
  registry.add_rule("CenterCropPad", 18, center_crop_pad);
}

}  // namespace invar::compiler
