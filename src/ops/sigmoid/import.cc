#include "ir/rules.h"

namespace invar::ir {

LogicalResult SigmoidOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                          SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}

void import_sigmoid(Rooms& rooms) {
  rooms.on("Sigmoid", 6, [](Node& node) { return direct<SigmoidOp>(node, 1); });
}

}  // namespace invar::ir
