// Lowering of Transpose, Concat and Expand.
#include <algorithm>

#include "compiler/room_api.h"
#include "ops/move/import/rules.h"

namespace invar::compiler {
namespace {

Type transposed_type(Type type) {
  Shape shape = shape_of(type);
  std::swap(shape[0], shape[1]);
  return tensor_of(shape, getElementTypeOrSelf(type));
}

// The transpose of a rank-2 weight, possibly behind one elementwise operation, is the weight with
// the attribute `transposed` flipped. Integers are excluded: exporters transpose lists of pads.
bool fold_transpose_into_weight(NodeView& node) {
  if (isa<IntegerType>(element_of(node.in(0)))) return false;
  Operation* through = node.in(0).getDefiningOp();
  auto weight = dyn_cast_or_null<ReproWeightOp>(through);
  if (!weight && through && isa<ReproOp>(through) && cast<ReproOp>(through).elementwise())
    weight = through->getOperand(0).getDefiningOp<ReproWeightOp>();
  if (!weight) return false;
  OpBuilder build(weight);
  build.setInsertionPointAfter(weight);
  auto other = cast<ReproWeightOp>(build.clone(*weight));
  other.getOut().setType(cast<RankedTensorType>(transposed_type(weight.getType())));
  other.setTransposed(!weight.getTransposed());
  Value result = other.getOut();
  if (through != weight) {
    Operation* copy = node.builder().clone(*through);
    copy->setOperand(0, other.getOut());
    copy->getResult(0).setType(transposed_type(through->getResult(0).getType()));
    result = copy->getResult(0);
  }
  node.replace(0, result);
  return true;
}

// Of more dimensions than kernels take: those of size 1 go, and those that stay side by side become
// one. The reshapes around it move no element, and what reads the result by a reshape reads before
// them.
Status transpose_large_rank(NodeView& node, Ints perm) {
  const Shape x = node.shape(0);
  if (x.size() != perm.size()) return bad_input("perm is not a permutation of the operand's dimensions");
  std::vector<std::vector<int64_t>> groups;  // of the operand's axes, in the result's order
  Shape result;
  for (const int64_t axis : perm) {
    if (axis < 0 || static_cast<size_t>(axis) >= x.size())
      return bad_input("perm is not a permutation of the operand's dimensions");
    const Dim& size = result.emplace_back(x[static_cast<size_t>(axis)]);
    if (!size.constant()) return not_covered("more than 8 dimensions, of which one is open");
    if (size == Dim::of(1)) continue;
    bool follows = !groups.empty();
    for (int64_t between = follows ? groups.back().back() + 1 : 0; follows && between < axis; ++between)
      follows = x[static_cast<size_t>(between)] == Dim::of(1);
    if (follows && groups.back().back() < axis)
      groups.back().push_back(axis);
    else
      groups.push_back({axis});
  }
  if (groups.size() > size_t{ops::kMaxRank}) return not_covered("more than 8 dimensions that move");
  std::vector<size_t> order(groups.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups[a][0] < groups[b][0]; });
  Shape collapsed;
  std::vector<int64_t> moved(groups.size());
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t size = 1;
    for (const int64_t axis : groups[order[i]]) size *= x[static_cast<size_t>(axis)].value;
    collapsed.push_back(Dim::of(size)), moved[order[i]] = static_cast<int64_t>(i);
  }
  INVAR_TRY(Value out, reshape(node, node.in(0), collapsed));
  if (groups.size() > 1) {
    INVAR_TRY(out, node.make<TransposeOp>(out, node.attr("perm", Ints(moved))));
  }
  INVAR_TRY(out, reshape(node, out, result));
  return node.replace(out);
}

Status transpose(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"perm"}));
  INVAR_TRY(std::vector<int64_t> perm, node.ints_attr("perm"));
  if (perm.empty())
    for (size_t d = node.shape(0).size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  bool same = perm.size() == node.shape(0).size();
  for (size_t d = 0; d < perm.size(); ++d) same &= perm[d] == static_cast<int64_t>(d);
  if (same) return node.replace(node.in(0));
  if (perm == std::vector<int64_t>{1, 0} && fold_transpose_into_weight(node)) return {};
  if (perm.size() > size_t{ops::kMaxRank}) return transpose_large_rank(node, perm);
  INVAR_TRY(Value out, node.make<TransposeOp>(node.in(0), node.attr("perm", Ints(perm))));
  return node.replace(out);
}

// Materializes the transpose of a weight that one of its readers cannot read transposed. The result
// is no weight, so a reader that would widen it gets it widened.
void transpose_stored_weight(ReproWeightOp weight) {
  OpBuilder build(weight->getContext());
  build.setInsertionPointAfter(weight);
  const int64_t perm[] = {1, 0};
  Type shape = weight.getType();
  Operation* out = make_op(build, weight.getLoc(), TransposeOp::getOperationName(), weight.getOut(),
                           build.getNamedAttr("perm", build.getDenseI64ArrayAttr(perm)), shape);
  weight.getOut().setType(cast<RankedTensorType>(transposed_type(shape)));
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

Status concat(NodeView& node) {
  SmallVector<Value> operands;
  while (node.has(static_cast<unsigned>(operands.size())))
    operands.push_back(node.in(static_cast<unsigned>(operands.size())));
  INVAR_CHECK_OK(node.expect(1, static_cast<unsigned>(operands.size()), {"axis"}));
  if (!node.attribute("axis") && node.version() >= 4) return bad_input("attribute \"axis\" is missing");
  INVAR_TRY(int64_t wanted, node.int_attr("axis", 1));
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, node.shape(0).size()));
  if (operands.size() == 1) return node.replace(operands[0]);
  INVAR_TRY(Value out, node.make<ConcatOp>(operands, node.attr("axis", axis)));
  return node.replace(out);
}

// Expand whose dimensions cannot be shown to broadcast: kernels check it in each call (onnx.24).
Status expand_dynamic(NodeView& node, Shape wanted) {
  Shape from = node.shape(0);
  if (wanted.size() < from.size()) wanted.insert(wanted.begin(), from.size() - wanted.size(), Dim::of(1));
  from.insert(from.begin(), wanted.size() - from.size(), Dim::of(1));
  Shape to = from, large = from;
  for (size_t d = 0; d < to.size(); ++d) {
    const std::optional<Dim> size = node.expand_to(from[d], wanted[d]);
    if (!size) return not_covered("dimensions " + text_of(from[d]) + " and " + text_of(wanted[d]));
    large[d] = *size;
    // A static dimension stays static.
    to[d] = from[d].constant() && from[d] != Dim::of(1) ? from[d] : large[d];
  }
  INVAR_TRY(Value out, expand(node, node.in(0), large));
  INVAR_TRY(out, reshape(node, out, to));
  return node.replace(out);
}

Status expand(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(Shape wanted, shape_operand(node, 1));
  const Shape from = node.shape(0);
  std::optional<Shape> shape = broadcast(from, wanted);
  if (!shape) {
    const Dim one = Dim::of(1);
    for (size_t i = 1; i <= std::min(from.size(), wanted.size()); ++i)
      if (const Dim& a = from[from.size() - i], &b = wanted[wanted.size() - i];
          a.constant() && b.constant() && a != b && a != one && b != one)
        return bad_input("shapes " + text_of(from) + " and " + text_of(wanted) + " do not broadcast");
    return expand_dynamic(node, wanted);
  }
  INVAR_TRY(Value out, expand(node, node.in(0), *shape));
  return node.replace(out);
}

}  // namespace

Result<Shape> shape_operand(NodeView& node, unsigned i) {
  INVAR_TRY(std::vector<DimExpr> sizes, node.dim_exprs(i));
  Shape shape;
  for (const DimExpr& s : sizes) {
    if (s.constant().value_or(0) < 0) return bad_input("dimension " + text_of(s));
    shape.push_back(Dim::of(s));
  }
  return shape;
}

void import_move_permutations(RuleRegistry& registry) {
  registry.add_rule("Transpose", 1, transpose);
  registry.add_rule("Concat", 1, concat);
  registry.add_rule("Expand", 8, expand);
  registry.transpose_weight(transpose_stored_weight);
}

}  // namespace invar::compiler
