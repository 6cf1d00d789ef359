#include "ir/rules.h"

namespace invar::ir {
namespace {

Status gather(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  INVAR_TRY(int64_t wanted, node.i("axis", 0));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  if (axis != 0 || node.shape(0).size() != 2) return not_covered("covered is axis 0 of a table of rank 2");
  INVAR_TRY(Value out, node.make<GatherOp>({node.in(0), node.in(1)}));
  return node.replace(out);
}

}  // namespace

LogicalResult GatherOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                         SmallVectorImpl<Type>& out) {
  Shape table = shape_of(op.getTable().getType()), shape = shape_of(op.getIndices().getType());
  if (table.size() != 2) return refuse(loc, "the table is not of rank 2");
  shape.push_back(table[1]);
  out.push_back(tensor_of(shape, Float32Type::get(context)));
  return success();
}

void import_gather(Rooms& rooms) {
  rooms.on("Gather", 1, gather);
}

}  // namespace invar::ir
