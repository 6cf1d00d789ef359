#include "ir/rules.h"

namespace invar::ir {

LogicalResult AddOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                      SmallVectorImpl<Type>& out) {
  return infer_broadcast(loc, op.getA(), op.getB(), out);
}

void import_add(Rooms& rooms) {
  rooms.on("Add", 7, [](Node& node) { return direct<AddOp>(node, 2); });
}

}  // namespace invar::ir
