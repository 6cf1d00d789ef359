// Type inference of the elementwise operations: the shapes broadcast, the element types are equal.
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
namespace {

LogicalResult add_shape(std::optional<Location> loc, Shape& x, const Shape& y) {
  if (std::optional<Shape> shape = broadcast(x, y)) {
    x = *shape;
    return success();
  }
  Dim one = Dim::of(1);
  bool provable = false;
  for (size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
    const Dim &p = x[x.size() - i], &q = y[y.size() - i];
    provable |= p.constant() && q.constant() && p != q && p != one && q != one;
  }
  std::string shapes = "shapes " + text_of(x) + " and " + text_of(y);
  return provable ? mismatch(loc, shapes + " do not broadcast")
                  : refuse(loc, shapes + " cannot be shown to broadcast");
}

Type f32_if_narrow(Value v) {
  Type t = getElementTypeOrSelf(v.getType());
  return t.isBF16() || t.isF16() ? Float32Type::get(t.getContext()) : t;
}

}  // namespace

LogicalResult infer_elementwise(std::optional<Location> loc, ValueRange operands, bool truth,
                                SmallVectorImpl<Type>& out) {
  Shape shape;
  for (Value v : operands)
    if (failed(add_shape(loc, shape, shape_of(v.getType())))) return failure();
  Value last = operands.back();
  Type element = f32_if_narrow(last);
  // A first operand of three is a condition.
  for (Value v : operands.drop_front(operands.size() == 3)) {
    if (f32_if_narrow(v) == element) continue;
    const std::string types = "operands of different element types: " + text_of_type(element_of(v)) +
                              " and " + text_of_type(element_of(last));
    // Rules compose with constants of f32.
    return element.isF64() || f32_if_narrow(v).isF64() ? refuse(loc, types) : mismatch(loc, types);
  }
  out.push_back(tensor_of(shape, truth ? IntegerType::get(element.getContext(), 1) : element));
  return success();
}

}  // namespace invar::compiler
