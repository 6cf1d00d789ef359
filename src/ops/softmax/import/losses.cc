// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, decomposed.
#include "ops/softmax/import/losses.h"

namespace invar::compiler {
namespace {

// -logs[n, target[n, ...], ...] times the weight of the target class, reduced by the attribute
// `reduction`.
Result<Value> nll_loss(NodeView& node, Value logs) {
  const Shape shape = shape_of(logs.getType()), target_shape = node.shape(1);
  if (shape.size() < 2 || target_shape.size() + 1 != shape.size())
    return bad_input("operand 1 does not have the rank of operand 0 less one");
  std::string how = "mean";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("reduction"))) how = given.str();
  if (how != "mean" && how != "sum" && how != "none")
    return bad_input("attribute \"reduction\" is none of none, sum and mean");
  Type i64 = node.builder().getI64Type(), f32 = node.builder().getF32Type(), i1 = node.builder().getI1Type();
  if (!element_of(logs).isF32()) return not_covered("covered are operands of f32, f16 and bf16");
  Value target = node.in(1);
  if (element_of(target) != i64) {
    INVAR_TRY(target, node.make<CastOp>(target, {}, tensor_of(target_shape, i64)));
  }
  Value ignored;
  if (node.attribute("ignore_index")) {
    INVAR_TRY(const int64_t ignore, node.int_attr("ignore_index", 0));
    INVAR_TRY(Value index, node.make<ReshapeOp>(node.constant(Ints(ignore)), {}, tensor_of({}, i64)));
    INVAR_TRY(Value none, node.make<ReshapeOp>(node.constant(Ints(0)), {}, tensor_of({}, i64)));
    INVAR_TRY(ignored, node.make<EqualOp>({target, index}, {}, tensor_of(target_shape, i1)));
    INVAR_TRY(target, node.make<WhereOp>({ignored, none, target}));
  }
  Shape column = target_shape;
  column.insert(column.begin() + 1, Dim::of(1));
  INVAR_TRY(Value index, node.make<ReshapeOp>(target, {}, tensor_of(column, i64)));
  INVAR_TRY(Value loss, node.make<GatherElementsOp>({logs, index}, node.attr("axis", int64_t{1})));
  INVAR_TRY(loss, node.make<ReshapeOp>(loss, {}, tensor_of(target_shape, f32)));
  INVAR_TRY(loss, node.make<NegOp>(loss));
  Value weight;
  if (node.has(2)) {
    if (node.shape(2).size() != 1 || !known_equal(node.shape(2)[0], shape[1]))
      return bad_input("operand 2 is not one weight for each class");
    INVAR_TRY(weight, node.make<GatherOp>({node.in(2), target}));
    INVAR_TRY(loss, node.make<MulOp>({loss, weight}));
  }
  if (ignored) {
    INVAR_TRY(loss, node.make<WhereOp>({ignored, node.constant(0.0f), loss}));
    if (!weight) {
      INVAR_TRY(weight, node.make<ExpandOp>(node.constant(1.0f), {}, tensor_of(target_shape, f32)));
    }
    INVAR_TRY(weight, node.make<WhereOp>({ignored, node.constant(0.0f), weight}));
  }
  if (how == "none") return loss;
  SmallVector<int64_t> axes;
  for (size_t d = 0; d < target_shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  const SmallVector<NamedAttribute> all = {node.attr("axes", Ints(axes)), node.attr("keepdims", int64_t{0})};
  if (how == "mean" && !weight) return node.make<ReduceMeanOp>(loss, all);
  INVAR_TRY(loss, node.make<ReduceSumOp>(loss, all));
  if (how == "sum") return loss;
  INVAR_TRY(weight, node.make<ReduceSumOp>(weight, all));
  return node.make<DivOp>({loss, weight});
}

Status negative_log_likelihood(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"ignore_index", "reduction"}));
  INVAR_TRY(Value loss, nll_loss(node, node.in(0)));
  return node.replace(loss);
}

Status cross_entropy(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"ignore_index", "reduction"}, 2));
  if (node.shape(0).size() < 2) return bad_input("operand 0 has no classes");
  INVAR_TRY(Value logs, node.make<LogSoftmaxOp>(node.in(0), node.attr("axis", int64_t{1})));
  INVAR_TRY(Value loss, nll_loss(node, logs));
  node.replace(1, logs);
  return node.replace(loss);
}

}  // namespace

void import_losses(RuleRegistry& registry) {
  registry.add_rule("NegativeLogLikelihoodLoss", 12, negative_log_likelihood);
  registry.add_rule("SoftmaxCrossEntropyLoss", 12, cross_entropy);
}

}  // namespace invar::compiler
