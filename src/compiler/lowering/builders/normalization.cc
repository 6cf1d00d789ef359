// Shared by the rules of layernorm and rmsnorm.
#include "compiler/lowering/builders/normalization.h"

namespace invar::compiler {

bool result_is_used(const NodeView& node, unsigned result) {
  Operation* op = node.out(0).getDefiningOp();
  return result < op->getNumResults() && !op->getResult(result).use_empty();
}

LogicalResult check_scale_shape(std::optional<Location> loc, const Shape& x, const Shape& weight) {
  if (weight.empty()) return refuse(loc, "the scale is a scalar");
  if (weight.size() > x.size()) return mismatch(loc, "the scale has more dimensions than the operand");
  for (size_t i = 1; i <= weight.size(); ++i)
    if (!may_be_equal(x[x.size() - i], weight[weight.size() - i]))
      return unequal_dims(loc, x[x.size() - i], weight[weight.size() - i],
                          "a dimension of operand and scale");
  return success();
}

LogicalResult infer_norm_backward(std::optional<Location> loc, Type grad, Type x, Type weight,
                                  SmallVectorImpl<Type>& out) {
  if (!may_be_equal(shape_of(grad), shape_of(x))) return mismatch(loc, "a gradient of another shape than x");
  if (failed(check_scale_shape(loc, shape_of(x), shape_of(weight)))) return failure();
  out.push_back(x);
  return success();
}

LogicalResult infer_norm_backward_weight(std::optional<Location> loc, Type grad, Type x, int64_t axis,
                                         SmallVectorImpl<Type>& out) {
  const Shape shape = shape_of(x);
  if (!may_be_equal(shape_of(grad), shape)) return mismatch(loc, "a gradient of another shape than x");
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(shape.size()));
  for (size_t i = static_cast<size_t>(axis); i < shape.size(); ++i)
    if (shape[i] == Dim::of(0)) return mismatch(loc, "a row without elements");
  out.push_back(tensor_of(Shape(shape.begin() + axis, shape.end()), cast<ShapedType>(x).getElementType()));
  return success();
}

Result<Value> residual_sum(NodeView& node, unsigned bias) {
  INVAR_TRY(Value sum, node.make<AddOp>({node.in(0), node.in(1)}));
  if (node.has(bias)) {
    INVAR_TRY(Value biased, node.make<AddOp>({sum, node.in(bias)}));
    sum = biased;
  }
  if (node.shape(2).size() != 1) return not_covered("a scale that is not of rank 1");
  node.replace(3, sum);
  return sum;
}

}  // namespace invar::compiler
