#include "ir/rules.h"

namespace invar::ir {
namespace {

Status batch_normalization(Node& node) {
  INVAR_CHECK_OK(node.expect(5, 5, {"epsilon", "momentum", "training_mode"}));
  INVAR_CHECK_OK(node.only("training_mode", int64_t{0}));
  INVAR_TRY(float epsilon, node.f("epsilon", 1e-5f));
  INVAR_TRY(Value out, node.make<BatchnormOp>({node.in(0), node.in(1), node.in(2), node.in(3), node.in(4)},
                                              {node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

}  // namespace

LogicalResult BatchnormOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                            SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType());
  if (x.size() < 2) return refuse(loc, "an operand of rank " + std::to_string(x.size()) + " has no channels");
  for (Value v : {op.getWeight(), op.getBias(), op.getMean(), op.getVariance()}) {
    Shape shape = shape_of(v.getType());
    if (shape.size() != 1) return refuse(loc, "scale, bias, mean or variance is not of rank 1");
    if (!same(x[1], shape[0]))
      return differ(loc, x[1], shape[0], "channels and scale, bias, mean or variance");
  }
  out.push_back(op.getX().getType());
  return success();
}

void import_batchnorm(Rooms& rooms) {
  rooms.on("BatchNormalization", 9, batch_normalization);
}

}  // namespace invar::ir
