#include "ir/rules.h"

namespace invar::ir {

LogicalResult MulOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                      SmallVectorImpl<Type>& out) {
  return infer_broadcast(loc, op.getA(), op.getB(), out);
}

void import_mul(Rooms& rooms) {
  rooms.on("Mul", 7, [](Node& node) { return direct<MulOp>(node, 2); });
}

}  // namespace invar::ir
