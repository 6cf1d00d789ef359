#include "ir/rules.h"

namespace invar::ir {

LogicalResult SinOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                      SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}

void import_sin(Rooms& rooms) {
  rooms.on("Sin", 7, [](Node& node) { return direct<SinOp>(node, 1); });
}

}  // namespace invar::ir
