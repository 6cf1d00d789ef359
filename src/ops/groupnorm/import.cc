// Lowering of GroupNormalization and InstanceNormalization, and the type inference of
// repro.groupnorm.
#include "compiler/room_api.h"
#include "ops/groupnorm/attributes.h"

namespace invar::compiler {
namespace {

Status normalize(NodeView& node, int64_t groups, Value weight, Value bias) {
  INVAR_TRY(float epsilon, node.float_attr("epsilon", 1e-5f));
  INVAR_TRY(Value out, node.make<GroupnormOp>({node.in(0), weight, bias},
                                              {node.attr("groups", groups), node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

// Repeats a parameter with one element per group for each channel of the group.
Result<Value> repeat_per_channel(NodeView& node, unsigned operand, int64_t groups) {
  const Shape x = node.shape(0);
  if (x.size() < 2 || !x[1].constant())
    return not_covered("the number of channels (dimension 1) is not a constant");
  const Shape wanted = {Dim::of(groups)};
  if (groups < 1 || x[1].value % groups || node.shape(operand) != wanted)
    return shape_error({node.shape(operand)},
                       "operand " + std::to_string(operand) + " of shape " + text_of(node.shape(operand)) +
                           " does not have an element for each of " + std::to_string(groups) + " groups");
  auto type = [&](Shape shape) { return tensor_of(shape, element_of(node.in(operand))); };
  const Dim g = Dim::of(groups), of_group = Dim::of(x[1].value / groups);
  INVAR_TRY(Value out, node.make<ReshapeOp>(node.in(operand), {}, type({g, Dim::of(1)})));
  INVAR_TRY(out, node.make<ExpandOp>(out, {}, type({g, of_group})));
  return node.make<ReshapeOp>(out, {}, type({x[1]}));
}

Status group_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"epsilon", "num_groups", "stash_type"}));
  INVAR_CHECK_OK(node.require_attr("stash_type", int64_t{1}));
  INVAR_TRY(int64_t groups, node.int_attr("num_groups", 0));
  Value weight = node.in(1), bias = node.in(2);
  if (node.version() < 21) {
    INVAR_TRY(weight, repeat_per_channel(node, 1, groups));
    INVAR_TRY(bias, repeat_per_channel(node, 2, groups));
  }
  return normalize(node, groups, weight, bias);
}

// Instance normalization is group normalization with one channel per group.
Status instance_normalization(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"epsilon"}));
  if (node.shape(0).size() < 2) return bad_input("an operand that has no channels");
  if (!node.shape(0)[1].constant()) {
    if (node.shape(1).size() == 1) {
      INVAR_CHECK_OK(node.require_equal(node.shape(0)[1], node.shape(1)[0], "channels and scale"));
    }
    return not_covered("the number of channels (dimension 1) is not a constant");
  }
  return normalize(node, node.shape(0)[1].value, node.in(1), node.in(2));
}

}  // namespace

Result<ValueType> infer_groupnorm(InferredCall& in, const ops::GroupnormAttributes& a) {
  const Shape& x = in[0].shape;
  if (x.size() < 2) return bad_input("an operand of rank " + std::to_string(x.size()) + " has no channels");
  if (!x[1].constant()) return not_covered("the number of channels (dimension 1) is not a constant");
  if (a.groups < 1 || x[1].value % a.groups)
    return bad_input(text_of(x[1]) + " channels do not divide into " + std::to_string(a.groups) + " groups");
  for (size_t i = 1; i < in.size(); ++i) {
    const Shape& shape = in[i].shape;
    if (shape.size() != 1) return not_covered("scale or bias is not of rank 1");
    if (!known_equal(x[1], shape[0])) return in.unequal_dims(x[1], shape[0], "channels and scale or bias");
  }
  return in[0];
}

void import_groupnorm(RuleRegistry& registry) {
  registry.add_rule("GroupNormalization", 18, group_normalization);
  registry.add_rule("InstanceNormalization", 1, instance_normalization);
}

}  // namespace invar::compiler
