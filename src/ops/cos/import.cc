#include "ir/rules.h"

namespace invar::ir {

LogicalResult CosOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                      SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}

void import_cos(Rooms& rooms) {
  rooms.on("Cos", 7, [](Node& node) { return direct<CosOp>(node, 1); });
}

}  // namespace invar::ir
