#include "ir/rules.h"

namespace invar::ir {
namespace {

Status rms_normalization(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis", "epsilon", "stash_type"}));
  INVAR_CHECK_OK(node.only("stash_type", int64_t{1}));
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  if (axis + 1 != static_cast<int64_t>(node.shape(0).size()))
    return not_covered("axis " + std::to_string(wanted) + "; covered is the last");
  INVAR_TRY(float epsilon, node.f("epsilon", 1e-5f));
  INVAR_TRY(Value out, node.make<RmsnormOp>({node.in(0), node.in(1)}, {node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

}  // namespace

LogicalResult RmsnormOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                          SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType()), weight = shape_of(op.getWeight().getType());
  if (weight.size() != 1) return refuse(loc, "the scale is not of rank 1");
  if (x.empty()) return mismatch(loc, "a scalar has no last axis");
  if (!same(x.back(), weight[0])) return differ(loc, x.back(), weight[0], "last dimension and scale");
  out.push_back(op.getX().getType());
  return success();
}

void import_rmsnorm(Rooms& rooms) {
  rooms.on("RMSNormalization", 23, rms_normalization);
}

}  // namespace invar::ir
