// Lowering of Softmax and LogSoftmax, and their type inference. The losses are in import/losses.h.
#include "ops/softmax/import/losses.h"

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

template <class Op>
Status softmax(NodeView& node) {
  return lower_softmax_like(node, [&node](Value x, int64_t axis) {
    return element_of(x).isF64() ? softmax_f64(node, x, axis, std::is_same_v<Op, LogSoftmaxOp>)
                                 : node.make<Op>(x, node.attr("axis", axis));
  });
}

LogicalResult infer(std::optional<Location> loc, Value x, int64_t axis, SmallVectorImpl<Type>& out) {
  Shape shape = shape_of(x.getType());
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(shape.size()));
  if (shape[axis] == Dim::of(0)) return mismatch(loc, "an axis without elements");
  out.push_back(x.getType());
  return success();
}

}  // namespace

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                          SmallVectorImpl<Type>& out) {
  return infer(loc, op.getX(), op.getAxis(), out);
}
LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                             SmallVectorImpl<Type>& out) {
  return infer(loc, op.getX(), op.getAxis(), out);
}

// The gradient of a result y has the shape of y.
static LogicalResult infer_backward(std::optional<Location> loc, Value grad, Value y, int64_t axis,
                                    SmallVectorImpl<Type>& out) {
  if (!may_be_equal(shape_of(grad.getType()), shape_of(y.getType())))
    return mismatch(loc, "a gradient of another shape than y");
  return infer(loc, y, axis, out);
}
LogicalResult SoftmaxBackwardOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                  SmallVectorImpl<Type>& out) {
  return infer_backward(loc, op.getGrad(), op.getY(), op.getAxis(), out);
}
LogicalResult LogSoftmaxBackwardOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                     SmallVectorImpl<Type>& out) {
  return infer_backward(loc, op.getGrad(), op.getY(), op.getAxis(), out);
}

static LogicalResult check_classes(std::optional<Location> loc, Value x, Value target) {
  const Shape rows = shape_of(x.getType()), classes = shape_of(target.getType());
  if (rows.size() != 2 || classes.size() != 1 || !may_be_equal(rows[0], classes[0]))
    return mismatch(loc, "rows [N, C] and classes [N]");
  if (rows[1] == Dim::of(0)) return mismatch(loc, "rows without elements");
  return success();
}
LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                               SmallVectorImpl<Type>& out) {
  if (failed(check_classes(loc, op.getX(), op.getTarget()))) return failure();
  out.push_back(tensor_of({shape_of(op.getX().getType())[0]}, element_of(op.getX())));
  return success();
}
LogicalResult CrossEntropyBackwardOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                       SmallVectorImpl<Type>& out) {
  if (failed(check_classes(loc, op.getX(), op.getTarget()))) return failure();
  const Shape grad = shape_of(op.getGrad().getType());
  if (grad.size() != 1 || !may_be_equal(grad[0], shape_of(op.getX().getType())[0]))
    return mismatch(loc, "a gradient of another shape than the losses");
  out.push_back(op.getX().getType());
  return success();
}

void import_softmax(RuleRegistry& registry) {
  registry.add_rule("Softmax", 1, softmax<SoftmaxOp>);
  registry.add_rule("LogSoftmax", 1, softmax<LogSoftmaxOp>);
  import_losses(registry);
}

}  // namespace invar::compiler
