// Lowering of TopK, and the type inference of repro.topk.
#include "compiler/room_api.h"
#include "ops/topk/attributes.h"

namespace invar::compiler {
namespace {

// The number of elements: an attribute before opset 10, then an operand.
Result<std::vector<DimExpr>> wanted_count(NodeView& node) {
  if (node.version() >= 10) {
    INVAR_CHECK_OK(node.expect(2, 2, {"axis", "largest", "sorted"}, 2));
    return node.dim_exprs(1);
  }
  INVAR_CHECK_OK(node.expect(1, 1, {"axis", "k"}, 2));
  if (!node.attribute("k")) return bad_input("attribute \"k\" is missing");
  INVAR_TRY(const int64_t k, node.int_attr("k", 0));
  return std::vector<DimExpr>{k};
}

// The values are gathered by the indices, so that one sort gives both results. A symbolic k sorts
// all and slices.
Status topk(NodeView& node) {
  INVAR_TRY(const std::vector<DimExpr> count, wanted_count(node));
  if (count.size() != 1) return bad_input("operand 1 is not one number");
  INVAR_TRY(int64_t wanted, node.int_attr("axis", -1));
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, node.shape(0).size()));
  INVAR_TRY(int64_t largest, node.int_attr("largest", 1));
  const std::optional<int64_t> k = count[0].constant();
  INVAR_TRY(Value index, argsort(node, node.in(0), axis, k, largest != 0));
  if (!k) {
    INVAR_TRY(index, slice(node, index, static_cast<size_t>(axis), 0, Dim::of(count[0])));
  }
  INVAR_TRY(Value values, node.make<GatherElementsOp>({node.in(0), index}, node.attr("axis", axis)));
  node.replace(1, index, /*stays_wide=*/true);
  return node.replace(values);
}

}  // namespace

Result<ValueType> infer_topk(InferredCall& in, const ops::TopkAttributes& a) {
  Shape shape = in[0].shape;
  INVAR_CHECK_OK(check_axis(a.axis, shape));
  if (const std::optional<int64_t> k = in.integer("k")) {  // a symbolic axis is checked at run time
    Dim& n = shape[static_cast<size_t>(a.axis)];
    if (*k < 0 || (n.constant() && *k > n.value))
      return bad_input("k = " + std::to_string(*k) + " of " + text_of(n) + " elements");
    n = Dim::of(*k);
  }
  return ValueType{DType::i64, shape};
}

void import_topk(RuleRegistry& registry) {
  registry.add_rule("TopK", 1, topk, Widening::ordered);
}

}  // namespace invar::compiler
