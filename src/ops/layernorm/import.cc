#include "ir/rules.h"

namespace invar::ir {
namespace {

Status layer_normalization(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "epsilon", "stash_type"}));
  INVAR_CHECK_OK(node.only("stash_type", int64_t{1}));
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  INVAR_TRY(int64_t axis, Node::axis(wanted, node.shape(0).size()));
  if (node.shape(1).size() != node.shape(0).size() - static_cast<size_t>(axis))
    return not_covered("a scale that does not have the dimensions from axis " + std::to_string(wanted) +
                       " on");
  INVAR_TRY(float epsilon, node.f("epsilon", 1e-5f));
  SmallVector<Value> in = {node.in(0), node.in(1)};
  if (node.has(2)) in.push_back(node.in(2));
  INVAR_TRY(Value out, node.make<LayernormOp>(in, {node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

}  // namespace

LogicalResult LayernormOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                            SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType()), weight = shape_of(op.getWeight().getType());
  if (weight.empty()) return refuse(loc, "the scale is a scalar");
  if (weight.size() > x.size()) return mismatch(loc, "the scale has more dimensions than the operand");
  for (size_t i = 1; i <= weight.size(); ++i)
    if (!same(x[x.size() - i], weight[weight.size() - i]))
      return differ(loc, x[x.size() - i], weight[weight.size() - i], "a dimension of operand and scale");
  if (op.getBias() && shape_of(op.getBias().getType()) != weight)
    return refuse(loc, "a bias of another shape than the scale");
  out.push_back(op.getX().getType());
  return success();
}

void import_layernorm(Rooms& rooms) {
  rooms.on("LayerNormalization", 17, layer_normalization);
}

}  // namespace invar::ir
