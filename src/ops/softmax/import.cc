// Lowering of Softmax and LogSoftmax, and their type inference. The losses are in import/losses.h.
#include "ops/softmax/attributes.h"
#include "ops/softmax/import/losses.h"

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

template <class Op>
Status softmax(NodeView& node) {
  return lower_softmax_like(node, [&node](Value x, int64_t axis) {
    return element_of(x).isF64() ? softmax_f64(node, x, axis, std::is_same_v<Op, LogSoftmaxOp>)
                                 : node.make<Op>(x, node.attr("axis", axis));
  });
}

}  // namespace

// The gradient of a result y has the shape of y.
Result<ValueType> infer_softmax_backward(InferredCall& in, const ops::SoftmaxBackwardAttributes& a) {
  if (!may_be_equal(in[0].shape, in[1].shape)) return bad_input("a gradient of another shape than y");
  return infer_along_axis(in, a.axis, /*operand=*/1);
}

static Status check_classes(const Shape& rows, const Shape& classes) {
  if (rows.size() != 2 || classes.size() != 1 || !may_be_equal(rows[0], classes[0]))
    return bad_input("rows [N, C] and classes [N]");
  if (rows[1] == Dim::of(0)) return bad_input("rows without elements");
  return {};
}
Result<ValueType> infer_cross_entropy(InferredCall& in, const ops::CrossEntropyAttributes&) {
  INVAR_CHECK_OK(check_classes(in[0].shape, in[1].shape));
  return ValueType{in[0].dtype, {in[0].shape[0]}};
}
Result<ValueType> infer_cross_entropy_backward(InferredCall& in, const ops::CrossEntropyBackwardAttributes&) {
  INVAR_CHECK_OK(check_classes(in[1].shape, in[2].shape));
  const Shape& grad = in[0].shape;
  if (grad.size() != 1 || !may_be_equal(grad[0], in[1].shape[0]))
    return bad_input("a gradient of another shape than the losses");
  return in[1];
}

void import_softmax(RuleRegistry& registry) {
  registry.add_rule("Softmax", 1, softmax<SoftmaxOp>);
  registry.add_rule("LogSoftmax", 1, softmax<LogSoftmaxOp>);
  import_losses(registry);
}

}  // namespace invar::compiler
