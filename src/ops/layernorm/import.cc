// Lowering of LayerNormalization and SkipLayerNormalization, and the type inference of
// repro.layernorm.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Results 1 and 2, if used: mean and 1 / sqrt(variance + epsilon) over the dimensions from `axis`
// on, which become 1.
Status emit_statistics(NodeView& node, Value x, int64_t axis, float epsilon) {
  SmallVector<int64_t> axes;
  for (int64_t d = axis; d < static_cast<int64_t>(shape_of(x.getType()).size()); ++d) axes.push_back(d);
  const llvm::ArrayRef<int64_t> from(axes);
  SmallVector<NamedAttribute> attrs = {node.attr("axes", from), node.attr("keepdims", int64_t{1})};
  if (result_is_used(node, 1)) {
    INVAR_TRY(Value mean, node.make<ReduceMeanOp>(x, attrs));
    node.replace(1, mean, /*stays_wide=*/true);
  }
  if (!result_is_used(node, 2)) return {};
  attrs.push_back(node.attr("correction", int64_t{0}));
  INVAR_TRY(Value variance, node.make<ReduceVarOp>(x, attrs));
  INVAR_TRY(Value shifted, node.make<AddOp>({variance, node.constant(epsilon)}));
  INVAR_TRY(Value root, node.make<SqrtOp>(shifted));
  INVAR_TRY(Value inverse, node.make<ReciprocalOp>(root));
  node.replace(2, inverse, /*stays_wide=*/true);
  return {};
}

Status skip_layer_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 5, {"epsilon"}, 4));
  INVAR_TRY(float epsilon, node.float_attr("epsilon", 1e-12f));
  INVAR_TRY(Value sum, residual_sum(node, 4));
  const auto rank = static_cast<int64_t>(shape_of(sum.getType()).size());
  SmallVector<Value> in = {sum, node.in(2)};
  if (node.has(3)) in.push_back(node.in(3));
  INVAR_TRY(Value out, node.make<LayernormOp>(in, {node.attr("epsilon", epsilon)}));
  INVAR_CHECK_OK(emit_statistics(node, sum, rank - 1, epsilon));
  return node.replace(out);
}

Status layer_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "epsilon", "stash_type"}, 3));
  INVAR_CHECK_OK(node.require_attr("stash_type", int64_t{1}));
  INVAR_TRY(int64_t wanted, node.int_attr("axis", -1));
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, node.shape(0).size()));
  if (node.shape(1).size() != node.shape(0).size() - static_cast<size_t>(axis))
    return not_covered("a scale that does not have the dimensions from axis " + std::to_string(wanted) +
                       " on");
  INVAR_TRY(float epsilon, node.float_attr("epsilon", 1e-5f));
  SmallVector<Value> in = {node.in(0), node.in(1)};
  if (node.has(2)) in.push_back(node.in(2));
  INVAR_TRY(Value out, node.make<LayernormOp>(in, {node.attr("epsilon", epsilon)}));
  INVAR_CHECK_OK(emit_statistics(node, node.in(0), axis, epsilon));
  return node.replace(out);
}

}  // namespace

void import_layernorm(RuleRegistry& registry) {
  registry.add_rule("LayerNormalization", 17, layer_normalization);
  registry.add_rule("com.microsoft.SkipLayerNormalization", 1, skip_layer_normalization);
}

}  // namespace invar::compiler
