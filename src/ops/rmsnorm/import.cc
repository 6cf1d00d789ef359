// Lowering of RMSNormalization and its names in ONNX Runtime, and the type inference of
// repro.rmsnorm.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Status skip_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 4, {"epsilon"}, 4));
  if (result_is_used(node, 1) || result_is_used(node, 2))
    return not_covered("results 1 and 2 are not covered");
  INVAR_TRY(float epsilon, node.float_attr("epsilon", 1e-12f));
  INVAR_TRY(Value sum, residual_sum(node, 3));
  INVAR_TRY(Value out, node.make<RmsnormOp>({sum, node.in(2)}, {node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

Status rms_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis", "epsilon", "stash_type"}));
  INVAR_CHECK_OK(node.require_attr("stash_type", int64_t{1}));
  INVAR_TRY(int64_t wanted, node.int_attr("axis", -1));
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, node.shape(0).size()));
  if (node.shape(1).size() != node.shape(0).size() - static_cast<size_t>(axis))
    return not_covered("a scale that does not have the dimensions from axis " + std::to_string(wanted) +
                       " on");
  INVAR_TRY(float epsilon, node.float_attr("epsilon", 1e-5f));
  INVAR_TRY(Value out, node.make<RmsnormOp>({node.in(0), node.in(1)}, {node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

}  // namespace

void import_rmsnorm(RuleRegistry& registry) {
  registry.add_rule("RMSNormalization", 23, rms_normalization, "TV>V");
  // ONNX Runtime's name, which it has in the default domain, too.
  registry.add_rule("SimplifiedLayerNormalization", 1, rms_normalization, "TV>V");
  registry.add_rule("com.microsoft.SimplifiedLayerNormalization", 1, rms_normalization, "TV>V");
  registry.add_rule("com.microsoft.SkipSimplifiedLayerNormalization", 1, skip_normalization);
}

}  // namespace invar::compiler
