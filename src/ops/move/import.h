// The ONNX nodes that choose elements: Transpose, Slice, Split, Concat, Expand; and how nodes give lists and numbers.
#pragma once
#include <algorithm>

#include "ir/rules.h"

namespace invar::ir {
namespace {

constexpr int64_t kFar = INT32_MAX;  // a bound that exporters write for "to the end"

// plan.9: a step has at least one sequence and one position.
bool never_empty(const Extent& e) {
  return e.name == "batch" || e.name == "seq";
}

// An integer list that is an attribute before opset `since` and then operand i; absent: empty.
Result<std::vector<int64_t>> list_of(Node& node, const char* name, unsigned i, int64_t since) {
  if (node.version() < since) return node.ints(name);
  if (!node.has(i)) return std::vector<int64_t>{};
  return node.constants(i);
}
Result<int64_t> number_of(Node& node, unsigned i, int64_t fallback) {
  if (!node.has(i)) return fallback;
  INVAR_TRY(std::vector<int64_t> v, node.constants(i));
  if (v.size() != 1) return bad_input("operand " + std::to_string(i) + " is not one number");
  return v[0];
}

Type flipped(Type type) {
  Shape shape = shape_of(type);
  std::swap(shape[0], shape[1]);
  return tensor_of(shape, getElementTypeOrSelf(type));
}

// The transpose of a rank-2 weight, possibly behind one elementwise operation, is the weight read in the other order.
bool flip_weight(Node& node) {
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
};
Result<Cut> cut_of(const Extent& n, int64_t start, int64_t end, int64_t step) {
  if (step == 0) return bad_input("a step of 0");
  if (!n.constant()) {
    if (step == 1 && start == 0 && end >= kFar) return Cut{0, 1, n};
    if (step == -1 && (start == -1 || start >= kFar) && end <= -kFar) return Cut{-1, -1, n};
    if (step == 1 && start == -1 && end >= kFar && never_empty(n)) return Cut{-1, 1, Extent::of(1)};
    return not_covered("of dimension " + text_of(n) +
                       " covered are all of it, its reverse and its last element");
  }
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n.value : n.value - 1;
  auto place = [&](int64_t at, int64_t least) { return std::clamp(at < 0 ? at + n.value : at, least, high); };
  start = place(start, 0), end = place(end, low);
  using Wide = __int128;
  Wide span = step > 0 ? Wide{end} - start : Wide{start} - end, stride = step > 0 ? Wide{step} : -Wide{step};
  int64_t size = span > 0 ? static_cast<int64_t>((span + stride - 1) / stride) : 0;
  return Cut{size ? start : 0, size > 1 ? step : 1, Extent::of(size)};
}

Result<Value> sliced(Node& node, const std::vector<Cut>& cuts) {
  std::vector<int64_t> starts, steps;
  Shape shape;
  bool whole = true;
  const Shape from = node.shape(0);
  for (size_t d = 0; d < cuts.size(); ++d) {
    starts.push_back(cuts[d].start), steps.push_back(cuts[d].step), shape.push_back(cuts[d].size);
    whole &= cuts[d].start == 0 && cuts[d].step == 1 && cuts[d].size == from[d];
  }
  if (whole) return node.in(0);
  return node.make<SliceOp>(node.in(0),
                            {node.attr("starts", llvm::ArrayRef<int64_t>(starts)),
                             node.attr("steps", llvm::ArrayRef<int64_t>(steps))},
                            tensor_of(shape, element_of(node.in(0))));
}
std::vector<Cut> all_of(const Shape& shape) {
  std::vector<Cut> cuts;
  for (const Extent& e : shape) cuts.push_back({0, 1, e});
  return cuts;
}

Status slice(Node& node) {
  if (node.version() < 10) {
    INVAR_CHECK_OK(node.expect(1, 1, {"starts", "ends", "axes"}));
  } else {
    INVAR_CHECK_OK(node.expect(3, 5, {}));
  }
  INVAR_TRY(std::vector<int64_t> starts, list_of(node, "starts", 1, 10));
  INVAR_TRY(std::vector<int64_t> ends, list_of(node, "ends", 2, 10));
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
    INVAR_TRY(cuts[axis], cut_of(from[axis], starts[i], ends[i], steps[i]));
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
  INVAR_TRY(std::vector<int64_t> sizes, list_of(node, "split", 1, 13));
  INVAR_TRY(int64_t count, node.i("num_outputs", parts));
  if (!from[axis].constant()) return not_covered("covered is an axis of constant length");
  const int64_t n = from[axis].value;
  if (sizes.empty()) {
    if (count != parts) return bad_input("num_outputs is not the number of results");
    if (node.version() < 18 && n % parts)
      return bad_input(std::to_string(n) + " elements do not divide into " + std::to_string(parts) +
                       " parts");
    const int64_t each = (n + parts - 1) / parts;
    for (int64_t at = 0; sizes.size() < parts; at += each)
      sizes.push_back(std::clamp<int64_t>(n - at, 0, each));
  }
  int64_t total = 0;
  for (int64_t s : sizes)
    if (s < 0 || __builtin_add_overflow(total, s, &total))
      return bad_input("a part of negative or absurd size");
  if (sizes.size() != parts || total != n)
    return bad_input("the parts do not make up the " + std::to_string(n) + " elements of the axis");
  int64_t at = 0;
  for (unsigned i = 0; i < parts; at += sizes[i], ++i) {
    std::vector<Cut> cuts = all_of(from);
    cuts[axis] = {sizes[i] ? at : 0, 1, Extent::of(sizes[i])};
    INVAR_TRY(Value part, sliced(node, cuts));
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
  INVAR_TRY(std::vector<int64_t> sizes, node.constants(i));
  Shape shape;
  for (int64_t s : sizes) {
    if (s < 0) return bad_input("dimension " + std::to_string(s));
    shape.push_back(Extent::of(s));
  }
  return shape;
}

Status expand(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(Shape wanted, constant_shape(node, 1));
  std::optional<Shape> shape = broadcast(node.shape(0), wanted);
  if (!shape)
    return bad_input("shapes " + text_of(node.shape(0)) + " and " + text_of(wanted) + " do not broadcast");
  INVAR_TRY(Value out, expanded(node, node.in(0), *shape));
  return node.replace(out);
}

}  // namespace
}  // namespace invar::ir
