// Lowering of BatchNormalization and the type inference of repro.batchnorm.
#include "compiler/room_api.h"
#include "ops/batchnorm/attributes.h"

namespace invar::compiler {
namespace {

// Before opset 9. is_test: without it, a node of opset 6 or below trains. spatial = 0: each element
// of a row is a channel.
Status batch_normalization_before_9(NodeView& node) {
  const bool says_mode = node.version() < 7;
  INVAR_CHECK_OK(says_mode ? node.expect(5, 5, {"epsilon", "is_test", "momentum", "spatial"})
                           : node.expect(5, 5, {"epsilon", "momentum", "spatial"}));
  INVAR_TRY(const float epsilon, node.float_attr("epsilon", 1e-5f));
  INVAR_TRY(const int64_t is_test, node.int_attr("is_test", !says_mode));
  if (!is_test) return not_covered("training: attribute \"is_test\" is 0");
  INVAR_TRY(const int64_t spatial, node.int_attr("spatial", 1));
  const Shape shape = node.shape(0);
  SmallVector<Value> operands = {node.in(0), node.in(1), node.in(2), node.in(3), node.in(4)};
  if (!spatial) {
    if (shape.size() < 2) return bad_input("an operand of rank " + std::to_string(shape.size()));
    INVAR_TRY(const Shape rows, flatten_to_matrix(shape, 1));
    for (size_t i = 0; i < operands.size(); ++i) {
      INVAR_TRY(operands[i], reshape(node, operands[i], i == 0 ? rows : Shape{rows[1]}));
    }
  }
  INVAR_TRY(Value out, node.make<BatchnormOp>(operands, {node.attr("epsilon", epsilon)}));
  INVAR_TRY(out, reshape(node, out, shape));
  return node.replace(out);
}

// Training mode uses the mean and variance of the batch, and updates the running ones by the
// momentum.
Status batch_normalization(NodeView& node) {
  if (node.version() < 9) return batch_normalization_before_9(node);
  INVAR_CHECK_OK(node.expect(5, 5, {"epsilon", "momentum", "training_mode"}, 3));
  INVAR_TRY(float epsilon, node.float_attr("epsilon", 1e-5f));
  INVAR_TRY(float momentum, node.float_attr("momentum", 0.9f));
  INVAR_TRY(int64_t training, node.int_attr("training_mode", 0));
  Value mean = node.in(3), variance = node.in(4);
  if (training) {
    SmallVector<int64_t> axes;
    for (size_t d = 0; d < node.shape(0).size(); ++d)
      if (d != 1) axes.push_back(static_cast<int64_t>(d));
    const NamedAttribute over = node.attr("axes", Ints(axes)), drop = node.attr("keepdims", int64_t{0});
    INVAR_TRY(mean, node.make<ReduceMeanOp>(node.in(0), {over, drop}));
    INVAR_TRY(variance,
              node.make<ReduceVarOp>(node.in(0), {over, drop, node.attr("correction", int64_t{0})}));
    const Value now[] = {mean, variance};
    for (unsigned i = 0; i < 2; ++i) {
      INVAR_TRY(Value kept, node.make<MulOp>({node.in(3 + i), node.constant(momentum)}));
      INVAR_TRY(Value fresh, node.make<MulOp>({now[i], node.constant(1 - momentum)}));
      INVAR_TRY(Value moved, node.make<AddOp>({kept, fresh}));
      node.replace(1 + i, moved);
    }
  } else if (node.num_results() > 1 &&
             (!node.out(1).use_empty() || (node.num_results() > 2 && !node.out(2).use_empty()))) {
    return not_covered("results 1 and 2 without training");
  }
  INVAR_TRY(Value out, node.make<BatchnormOp>({node.in(0), node.in(1), node.in(2), mean, variance},
                                              {node.attr("epsilon", epsilon)}));
  return node.replace(out);
}

}  // namespace

Result<ValueType> infer_batchnorm(InferredCall& in, const ops::BatchnormAttributes&) {
  const Shape& x = in[0].shape;
  if (x.size() < 2) return not_covered("an operand of rank " + std::to_string(x.size()) + " has no channels");
  for (size_t i = 1; i < in.size(); ++i) {
    const Shape& shape = in[i].shape;
    if (shape.size() != 1) return not_covered("scale, bias, mean or variance is not of rank 1");
    if (!known_equal(x[1], shape[0]))
      return in.unequal_dims(x[1], shape[0], "channels and scale, bias, mean or variance");
  }
  return in[0];
}

void import_batchnorm(RuleRegistry& registry) {
  registry.add_rule("BatchNormalization", 1, batch_normalization, "TSSUU>TUU@14");
}

}  // namespace invar::compiler
