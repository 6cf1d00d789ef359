#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
namespace {

template <class Op>
Status scan(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"exclusive", "reverse"}));
  INVAR_TRY(std::vector<int64_t> wanted, node.constants(1));
  if (wanted.size() != 1) return bad_input("operand 1 is not one axis");
  INVAR_TRY(int64_t axis, Node::axis(wanted[0], node.shape(0).size()));
  INVAR_TRY(int64_t exclusive, node.i("exclusive", 0));
  INVAR_TRY(int64_t reverse, node.i("reverse", 0));
  INVAR_TRY(Value out, node.make<Op>(node.in(0), {node.attr("axis", axis),
                                                  node.attr("exclusive", int64_t{exclusive != 0}),
                                                  node.attr("reverse", int64_t{reverse != 0})}));
  return node.replace(out);
}

}  // namespace

LogicalResult CumsumOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                         SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}
LogicalResult CumprodOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                          SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}

void import_scan(Rooms& rooms) {
  rooms.on("CumSum", 11, scan<CumsumOp>, Widens::wrapping);
  rooms.on("CumProd", 26, scan<CumprodOp>, Widens::wrapping);
}

}  // namespace invar::compiler
