// Lowering of CumSum and CumProd.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

template <class Op>
Status scan(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"exclusive", "reverse"}));
  INVAR_TRY(std::vector<int64_t> wanted, node.constant_ints(1));
  if (wanted.size() != 1) return bad_input("operand 1 is not one axis");
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted[0], node.shape(0).size()));
  INVAR_TRY(int64_t exclusive, node.int_attr("exclusive", 0));
  INVAR_TRY(int64_t reverse, node.int_attr("reverse", 0));
  INVAR_TRY(Value out, node.make<Op>(node.in(0), {node.attr("axis", axis),
                                                  node.attr("exclusive", int64_t{exclusive != 0}),
                                                  node.attr("reverse", int64_t{reverse != 0})}));
  return node.replace(out);
}

}  // namespace

void import_scan(RuleRegistry& registry) {
  registry.add_rule("CumSum", 11, scan<CumsumOp>, Widening::wrapping);
  registry.add_rule("CumProd", 26, scan<CumprodOp>, Widening::wrapping);
}

}  // namespace invar::compiler
