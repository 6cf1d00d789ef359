// Shorthand for rules that make one node of many operations.
#pragma once
#include <bit>

#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

using Sizes = llvm::ArrayRef<int64_t>;

// The same elements under another shape.
inline Result<Value> shaped(Node& node, Value x, const Shape& shape) {
  if (shape_of(x.getType()) == shape) return x;
  return node.make<ReshapeOp>(x, {}, tensor_of(shape, element_of(x)));
}
// The number of elements before an axis and from it on; the axis may be the rank.
inline Result<Shape> matrix_of(const Shape& shape, int64_t axis) {
  Shape made;
  for (const Shape& side :
       {Shape(shape.begin(), shape.begin() + axis), Shape(shape.begin() + axis, shape.end())}) {
    const std::optional<Polynomial> count = count_of(side);
    if (!count) return not_covered("dimensions of " + text_of(side) + " do not make one");
    made.push_back(Extent::of(*count));
  }
  return made;
}
// Softmax, LogSoftmax and Hardmax. Before opset 13 they are along all dimensions from their axis on, 1 where it is absent.
inline Status along_axis(Node& node, llvm::function_ref<Result<Value>(Value x, int64_t axis)> rule) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis"}));
  const bool joins = node.version() < 13;
  INVAR_TRY(int64_t axis, node.i("axis", joins ? 1 : -1));
  const Shape shape = node.shape(0);
  INVAR_TRY(axis, Node::axis(axis, shape.size()));
  Value x = node.in(0);
  if (joins && axis + 1 < static_cast<int64_t>(shape.size())) {
    INVAR_TRY(const Shape matrix, matrix_of(shape, axis));
    INVAR_TRY(x, shaped(node, x, matrix));
    axis = 1;
  }
  INVAR_TRY(Value out, rule(x, axis));
  INVAR_TRY(out, shaped(node, out, shape));
  return node.replace(out);
}
inline Result<Value> permuted(Node& node, Value x, Sizes perm) {
  return node.make<TransposeOp>(x, node.attr("perm", perm));
}
// [B, N, H * D] of [B, H, N, D] that is made of it by splitting and turning; null: it is not.
inline Value heads_last(Value x) {
  auto turned = x.getDefiningOp<TransposeOp>();
  auto split = turned ? turned.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split || turned.getPerm() != Sizes{0, 2, 1, 3}) return {};
  const Shape from = shape_of(split.getX().getType()), to = shape_of(split.getType());
  const bool fits = from.size() == 3 && from[0] == to[0] && from[1] == to[1] && to[2].constant() &&
                    to[3].constant() && from[2] == Extent::of(to[2].value * to[3].value);
  return fits ? split.getX() : Value();
}
// A number, i64 [], of which a call is an error where it is below 0: a dimension, too, where that does not follow.
inline Result<Value> counted_up_to(Node& node, const Polynomial& number) {
  if (number.never_negative()) return node.sizes(number, {});
  const int64_t one = 1, zero = 0;
  INVAR_TRY(Value ones, node.make<ExpandOp>(node.constant(Sizes(one)), {},
                                            tensor_of({Extent::of(number)}, node.build().getI64Type())));
  return node.make<ReduceSumOp>(ones, {node.attr("axes", Sizes(zero)), node.attr("keepdims", zero)});
}
// x over a larger shape.
inline Result<Value> spread(Node& node, Value x, const Shape& shape) {
  if (shape_of(x.getType()) == shape) return x;
  return node.make<ExpandOp>(x, {}, tensor_of(shape, element_of(x)));
}
// [start, start + size) along an axis.
inline Result<Value> part(Node& node, Value x, size_t axis, int64_t start, const Extent& size) {
  Shape shape = shape_of(x.getType());
  if (start == 0 && shape[axis] == size) return x;
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[axis] = size == Extent::of(0) ? 0 : start, shape[axis] = size;
  return node.make<SliceOp>(x, {node.attr("starts", Sizes(starts)), node.attr("steps", Sizes(steps))},
                            tensor_of(shape, element_of(x)));
}
inline Result<Value> part(Node& node, Value x, size_t axis, int64_t start, int64_t size) {
  return part(node, x, axis, start, Extent::of(size));
}
inline Result<Value> joined(Node& node, ValueRange parts, int64_t axis) {
  if (parts.size() == 1) return Value(parts[0]);
  return node.make<ConcatOp>(parts, node.attr("axis", axis));
}
// a x b, or a x the transpose of b.
inline Result<Value> product(Node& node, Value a, Value b, bool transposed = false) {
  return node.make<MatmulOp>({a, b}, {node.attr("trans_b", int64_t{transposed})});
}
// A number of binary64.
inline Value wide(Node& node, double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  std::string bytes;
  for (int i = 0; i < 8; ++i, bits >>= 8) bytes += static_cast<char>(bits);
  return node.constant(bytes, DType::f64);
}
// Softmax of binary64, step by step (onnx.18).
inline Result<Value> wide_softmax(Node& node, Value x, int64_t axis, bool logarithm) {
  const SmallVector<NamedAttribute> along = {node.attr("axes", Sizes(axis)),
                                             node.attr("keepdims", int64_t{1})};
  INVAR_TRY(Value most, node.make<ReduceMaxOp>(x, along));
  INVAR_TRY(Value centred, node.make<SubOp>({x, most}));
  INVAR_TRY(Value weights, node.make<ExpF64Op>(centred));
  INVAR_TRY(Value total, node.make<ReduceSumOp>(weights, along));
  if (!logarithm) return node.make<DivOp>({weights, total});
  INVAR_TRY(total, node.make<LogF64Op>(total));
  return node.make<SubOp>({centred, total});
}

// 0, 1, ... n - 1 in this shape.
inline Result<Value> counted(Node& node, int64_t n, const Shape& shape) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(i);
  return shaped(node, node.constant(all), shape);
}

// A number in a constant operand, or what stands for it where it is absent.
inline Result<int64_t> number_of(const Node& node, unsigned operand, int64_t absent) {
  if (!node.has(operand)) return absent;
  INVAR_TRY(const std::vector<int64_t> list, node.constants(operand));
  if (list.size() == 1) return list[0];
  return bad_input("operand " + std::to_string(operand) + " is not one number");
}

// Which of `names`, separated by blanks, the attribute has.
inline Result<int64_t> choice(Node& node, const char* name, llvm::StringRef names, llvm::StringRef standard) {
  llvm::StringRef value = standard;
  if (Attribute given = node.attribute(name)) {
    auto text = dyn_cast<StringAttr>(given);
    if (!text) return bad_input("attribute \"" + std::string(name) + "\" is not a string");
    value = text.getValue();
  }
  SmallVector<llvm::StringRef> all;
  names.split(all, ' ');
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == value) return static_cast<int64_t>(i);
  return not_covered("attribute \"" + std::string(name) + "\" is \"" + value.str() + "\"");
}

}  // namespace invar::compiler
