// Lowering of the reductions, ArgMax, Hardmax and the normalizations made of reductions, and their
// type inference.
#include <limits>

#include "compiler/room_api.h"
#include "ops/reduce/attributes.h"

namespace invar::compiler {
namespace {

Result<std::vector<int64_t>> sorted_axes(llvm::ArrayRef<int64_t> given, size_t rank) {
  std::set<int64_t> axes;
  for (int64_t a : given) {
    INVAR_TRY(int64_t axis, NodeView::normalize_axis(a, rank));
    if (!axes.insert(axis).second) return bad_input("axis " + std::to_string(a) + " twice");
  }
  return std::vector<int64_t>(axes.begin(), axes.end());
}

// The sorted axes of a node: an operand since opset `operand_since`, before that an attribute; all
// if there are none.
Result<std::vector<int64_t>> axes_of(NodeView& node, int64_t operand_since) {
  std::vector<int64_t> given;
  if (node.version() >= operand_since) {
    INVAR_CHECK_OK(node.expect(1, 2, {"keepdims", "noop_with_empty_axes"}));
    if (node.has(1)) {
      INVAR_TRY(given, node.constant_ints(1));
    }
  } else {
    INVAR_CHECK_OK(node.expect(1, 1, {"axes", "keepdims"}));
    INVAR_TRY(given, node.ints_attr("axes"));
  }
  const size_t rank = node.shape(0).size();
  if (given.empty())
    for (size_t d = 0; d < rank; ++d) given.push_back(static_cast<int64_t>(d));
  return sorted_axes(given, rank);
}

// Log-sum and log-sum-exp of f64, decomposed (onnx.18, reduce.9).
Result<Value> log_sum_f64(NodeView& node, Value x, llvm::ArrayRef<int64_t> axes, bool keep, bool of_powers) {
  const SmallVector<NamedAttribute> attrs = {node.attr("axes", axes), node.attr("keepdims", int64_t{keep})},
                                    kept = {node.attr("axes", axes), node.attr("keepdims", int64_t{1})};
  if (!of_powers) {
    INVAR_TRY(Value total, node.make<ReduceSumOp>(x, attrs));
    return node.make<LogF64Op>(total);
  }
  INVAR_TRY(Value max, node.make<ReduceMaxOp>(x, kept));
  INVAR_TRY(Value none, node.make<SubOp>({max, max}));
  INVAR_TRY(Value finite, node.make<EqualOp>({none, f64_constant(node, 0)}));
  INVAR_TRY(Value centre, node.make<WhereOp>({finite, max, f64_constant(node, 0)}));
  INVAR_TRY(x, node.make<SubOp>({x, centre}));
  INVAR_TRY(x, node.make<ExpF64Op>(x));
  INVAR_TRY(Value total, node.make<ReduceSumOp>(x, attrs));
  INVAR_TRY(total, node.make<LogF64Op>(total));
  INVAR_TRY(centre, reshape(node, centre, shape_of(total.getType())));
  return node.make<AddOp>({centre, total});
}

template <class Op, int kOperandSince, bool kIdentity>
Status reduction(NodeView& node) {
  INVAR_TRY(std::vector<int64_t> axes, axes_of(node, kOperandSince));
  INVAR_TRY(int64_t keep, node.int_attr("keepdims", 1));
  INVAR_TRY(int64_t noop, node.int_attr("noop_with_empty_axes", 0));
  Value x = node.in(0);
  if (noop && axes.size() == node.shape(0).size()) {
    bool named = false;
    if (node.has(1)) {
      INVAR_TRY(std::vector<int64_t> given, node.constant_ints(1));
      named = !given.empty();
    }
    if (!named && kIdentity) return node.replace(node.in(0));
    if (!named) {  // of each element alone
      Shape single = node.shape(0);
      axes = {static_cast<int64_t>(single.size())}, keep = 0;
      single.push_back(Dim::of(1));
      INVAR_TRY(x, reshape(node, x, single));
    }
  }
  const SmallVector<NamedAttribute> attrs = {node.attr("axes", Ints(axes)),
                                             node.attr("keepdims", int64_t{keep != 0})};
  constexpr bool of_powers = std::is_same_v<Op, ReduceLogSumExpOp>;
  if constexpr (of_powers || std::is_same_v<Op, ReduceLogSumOp>)
    if (element_of(node.in(0)).isF64()) {
      INVAR_TRY(Value out, log_sum_f64(node, x, axes, keep != 0, of_powers));
      return node.replace(out);
    }
  INVAR_TRY(Value out, node.make<Op>(x, attrs));
  return node.replace(out);
}

// Folds a list of dimension expressions.
template <std::optional<DimExpr> (*both)(const DimExpr&, const DimExpr&)>
std::optional<DimExpr> fold_dims(llvm::ArrayRef<DimExpr> list) {
  std::optional<DimExpr> all = list.empty() ? std::nullopt : std::optional(list[0]);
  for (size_t i = 1; all && i < list.size(); ++i) all = both(*all, list[i]);
  return all;
}

// A reduction that keeps the axes as 1.
template <class Op>
Result<Value> reduce_keepdims(NodeView& node, Value x, llvm::ArrayRef<int64_t> axes) {
  return node.make<Op>(x, {node.attr("axes", axes), node.attr("keepdims", int64_t{1})});
}

// x / norm, and 0 where the norm is 0.
Status lp_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis", "p"}));
  INVAR_TRY(int64_t wanted, node.int_attr("axis", -1));
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t p, node.int_attr("p", 2));
  if (p != 1 && p != 2) return bad_input("attribute \"p\" is neither 1 nor 2");
  Value x = node.in(0);
  INVAR_TRY(Value norm,
            p == 1 ? reduce_keepdims<ReduceL1Op>(node, x, axis) : reduce_keepdims<ReduceL2Op>(node, x, axis));
  INVAR_TRY(Value none, node.make<EqualOp>({norm, node.constant(0.0f)}));
  INVAR_TRY(Value divisor,
            node.make<WhereOp>({none, node.constant(std::numeric_limits<float>::infinity()), norm}));
  INVAR_TRY(Value out, node.make<DivOp>({x, divisor}));
  return node.replace(out);
}

// (x - mean) / (deviation + 1e-9), the deviation in two passes (reduce.10).
Status mean_variance_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axes"}));
  INVAR_TRY(std::vector<int64_t> given, node.ints_attr("axes"));
  if (!node.attribute("axes")) given = {0, 2, 3};
  INVAR_TRY(std::vector<int64_t> axes, sorted_axes(given, node.shape(0).size()));
  Value x = node.in(0);
  INVAR_TRY(Value mean, reduce_keepdims<ReduceMeanOp>(node, x, axes));
  INVAR_TRY(Value centred, node.make<SubOp>({x, mean}));
  INVAR_TRY(Value deviation,
            node.make<ReduceStdOp>(x, {node.attr("axes", Ints(axes)), node.attr("keepdims", int64_t{1}),
                                       node.attr("correction", int64_t{0})}));
  INVAR_TRY(Value shifted, node.make<AddOp>({deviation, node.constant(1e-9f)}));
  INVAR_TRY(Value out, node.make<DivOp>({centred, shifted}));
  return node.replace(out);
}

Status hardmax(NodeView& node) {
  return lower_softmax_like(
      node, [&node](Value x, int64_t axis) { return node.make<HardmaxOp>(x, node.attr("axis", axis)); });
}

// Takes, of integers, the argmax of a mask of the elements equal to the extreme.
template <class Op, class Extreme>
Status lower_arg_extreme(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis", "keepdims", "select_last_index"}));
  INVAR_TRY(int64_t wanted, node.int_attr("axis", 0));
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t keep, node.int_attr("keepdims", 1));
  INVAR_TRY(int64_t last, node.int_attr("select_last_index", 0));
  SmallVector<NamedAttribute> attrs = {node.attr("axis", axis), node.attr("select_last", int64_t{last != 0})};
  Value out;
  if (element_of(node.in(0)).isIntOrIndex()) {
    INVAR_TRY(Value max, reduce_keepdims<Extreme>(node, node.in(0), axis));
    INVAR_TRY(Value is_max, node.make<EqualOp>({node.in(0), max}));
    INVAR_TRY(Value ones,
              node.make<CastOp>(is_max, {}, tensor_of(node.shape(0), node.builder().getF32Type())));
    INVAR_TRY(out, node.make<ArgmaxOp>(ones, attrs));
  } else {
    INVAR_TRY(out, node.make<Op>(node.in(0), attrs));
  }
  if (keep) {
    Shape kept = node.shape(0);
    kept[axis] = Dim::of(1);
    INVAR_TRY(out, node.make<ReshapeOp>(out, {}, tensor_of(kept, node.builder().getI64Type())));
  }
  node.replace(0, out, /*stays_wide=*/true);
  return {};
}

}  // namespace

Result<ValueType> infer_extreme(InferredCall& in, const ops::ArgmaxAttributes& a) {
  Shape shape = in[0].shape;
  INVAR_CHECK_OK(check_axis(a.axis, shape));
  const auto at = shape.begin() + a.axis;
  if (*at == Dim::of(0)) return bad_input("an axis without elements has no extreme");
  shape.erase(at);
  return ValueType{in[0].dtype, shape};
}

Result<ValueType> infer_hardmax(InferredCall& in, const ops::HardmaxAttributes& a) {
  INVAR_CHECK_OK(check_axis(a.axis, in[0].shape));
  if (in[0].shape[static_cast<size_t>(a.axis)] == Dim::of(0))
    return bad_input("an axis without elements has no extreme");
  return in[0];
}

// Axes are an operand from opset 13 (ReduceSum) or 18 on. noop_with_empty_axes without axes is the
// identity for reductions whose value of one element is that element; the others are refused.
void import_reduce(RuleRegistry& registry) {
  registry.propagates_dims<ReduceProdOp>(fold_dims<invar::product>);
  registry.propagates_dims<ReduceSumOp>(fold_dims<invar::sum>);
  registry.propagates_dims<ReduceMaxOp>(fold_dims<maximum>);
  registry.propagates_dims<ReduceMinOp>(fold_dims<minimum>);
  registry.add_rule("ReduceSum", 1, reduction<ReduceSumOp, 13, true>, Widening::wrapping);
  registry.add_rule("ReduceMean", 1, reduction<ReduceMeanOp, 18, true>, Widening::integers);
  registry.add_rule("ReduceProd", 1, reduction<ReduceProdOp, 18, true>, Widening::wrapping);
  registry.add_rule("ReduceMax", 1, reduction<ReduceMaxOp, 18, true>, Widening::ordered);
  registry.add_rule("ReduceMin", 1, reduction<ReduceMinOp, 18, true>, Widening::ordered);
  registry.add_rule("ReduceL1", 1, reduction<ReduceL1Op, 18, false>, Widening::integers);
  registry.add_rule("ReduceL2", 1, reduction<ReduceL2Op, 18, false>);
  registry.add_rule("ReduceSumSquare", 1, reduction<ReduceSumSquareOp, 18, false>, Widening::wrapping);
  registry.add_rule("ReduceLogSum", 1, reduction<ReduceLogSumOp, 18, false>);
  registry.add_rule("ReduceLogSumExp", 1, reduction<ReduceLogSumExpOp, 18, false>);
  registry.add_rule("LpNormalization", 1, lp_normalization);
  registry.add_rule("MeanVarianceNormalization", 9, mean_variance_normalization);
  registry.add_rule("Hardmax", 1, hardmax);
  registry.add_rule("ArgMax", 1, lower_arg_extreme<ArgmaxOp, ReduceMaxOp>, Widening::ordered);
  registry.add_rule("ArgMin", 1, lower_arg_extreme<ArgminOp, ReduceMinOp>, Widening::ordered);
}

}  // namespace invar::compiler
