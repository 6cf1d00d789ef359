// Helpers that emit repro operations (op_builder.h).
#include "compiler/lowering/op_builder.h"

#include <bit>

namespace invar::compiler {

// What x is a reshape of, if x has more dimensions than kernels take; else x.
static Value before_large_rank(Value x) {
  for (auto made = x.getDefiningOp<ReshapeOp>(); made && shape_of(x.getType()).size() > ops::kMaxRank;
       made = x.getDefiningOp<ReshapeOp>())
    x = made.getX();
  return x;
}

Result<Value> reshape(NodeView& node, Value x, const Shape& shape) {
  x = before_large_rank(x);
  if (shape_of(x.getType()) == shape) return x;
  return node.make<ReshapeOp>(x, {}, tensor_of(shape, element_of(x)));
}

Result<Value> cast_to(NodeView& node, Value x, Type element) {
  if (element_of(x) == element) return x;
  return node.make<CastOp>(x, {}, tensor_of(shape_of(x.getType()), element));
}

Result<Shape> flatten_to_matrix(const Shape& shape, int64_t axis) {
  Shape made;
  for (const Shape& side :
       {Shape(shape.begin(), shape.begin() + axis), Shape(shape.begin() + axis, shape.end())}) {
    const std::optional<DimExpr> count = element_count(side);
    if (!count) return not_covered("dimensions of " + text_of(side) + " do not make one");
    made.push_back(Dim::of(*count));
  }
  return made;
}

Status lower_softmax_like(NodeView& node, llvm::function_ref<Result<Value>(Value x, int64_t axis)> rule) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis"}));
  const bool joins = node.version() < 13;
  INVAR_TRY(int64_t axis, node.int_attr("axis", joins ? 1 : -1));
  const Shape shape = node.shape(0);
  INVAR_TRY(axis, NodeView::normalize_axis(axis, shape.size()));
  Value x = node.in(0);
  if (joins && axis + 1 < static_cast<int64_t>(shape.size())) {
    INVAR_TRY(const Shape matrix, flatten_to_matrix(shape, axis));
    INVAR_TRY(x, reshape(node, x, matrix));
    axis = 1;
  }
  INVAR_TRY(Value out, rule(x, axis));
  INVAR_TRY(out, reshape(node, out, shape));
  return node.replace(out);
}

Result<Value> transpose(NodeView& node, Value x, Ints perm) {
  return node.make<TransposeOp>(x, node.attr("perm", perm));
}

Value match_heads_last(Value x) {
  auto turned = x.getDefiningOp<TransposeOp>();
  auto split = turned ? turned.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split || turned.getPerm() != Ints{0, 2, 1, 3}) return {};
  const Shape from = shape_of(split.getX().getType()), to = shape_of(split.getType());
  const bool fits = from.size() == 3 && from[0] == to[0] && from[1] == to[1] && to[2].constant() &&
                    to[3].constant() && from[2] == Dim::of(to[2].value * to[3].value);
  return fits ? split.getX() : Value();
}

Result<Value> nonnegative_size_tensor(NodeView& node, const DimExpr& number) {
  if (number.is_nonnegative()) return node.size_tensor(number, {});
  const int64_t one = 1, zero = 0;
  INVAR_TRY(Value ones, node.make<ExpandOp>(node.constant(Ints(one)), {},
                                            tensor_of({Dim::of(number)}, node.builder().getI64Type())));
  return node.make<ReduceSumOp>(ones, {node.attr("axes", Ints(zero)), node.attr("keepdims", zero)});
}

Result<Value> expand(NodeView& node, Value x, const Shape& shape) {
  if (shape_of(x.getType()) == shape) return x;
  return node.make<ExpandOp>(x, {}, tensor_of(shape, element_of(x)));
}

Result<Value> slice(NodeView& node, Value x, size_t axis, int64_t start, const Dim& size) {
  Shape shape = shape_of(x.getType());
  if (start == 0 && shape[axis] == size) return x;
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[axis] = size == Dim::of(0) ? 0 : start, shape[axis] = size;
  return node.make<SliceOp>(x, {node.attr("starts", Ints(starts)), node.attr("steps", Ints(steps))},
                            tensor_of(shape, element_of(x)));
}

Result<Value> slice(NodeView& node, Value x, size_t axis, int64_t start, int64_t size) {
  return slice(node, x, axis, start, Dim::of(size));
}

Result<Value> concat(NodeView& node, ValueRange parts, int64_t axis) {
  if (parts.size() == 1) return Value(parts[0]);
  return node.make<ConcatOp>(parts, node.attr("axis", axis));
}

// The order of the sum does not matter.
static Result<Value> integer_product(NodeView& node, Value a, Value b, bool transposed) {
  Shape rows = shape_of(a.getType()), columns = shape_of(b.getType());
  if (rows.size() < 2 || columns.size() < 2) return not_covered("covered is [..., M, K] x [..., K, N]");
  if (!transposed) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(columns.size())));
    std::swap(perm.back(), perm[perm.size() - 2]), std::swap(columns.back(), columns[columns.size() - 2]);
    INVAR_TRY(b, transpose(node, b, perm));
  }
  INVAR_CHECK_OK(node.require_equal(rows.back(), columns.back(), "inner dimensions"));
  rows.insert(rows.end() - 1, Dim::of(1)), columns.insert(columns.end() - 2, Dim::of(1));
  INVAR_TRY(a, reshape(node, a, rows));
  INVAR_TRY(b, reshape(node, b, columns));
  INVAR_TRY(Value all, node.make<MulOp>({a, b}));
  const int64_t inner = static_cast<int64_t>(shape_of(all.getType()).size()) - 1;
  return node.make<ReduceSumOp>(all, {node.attr("axes", Ints(inner)), node.attr("keepdims", int64_t{0})});
}

Result<Value> matrix_product(NodeView& node, Value a, Value b, bool transposed) {
  if (element_of(a).isIntOrIndex() && element_of(a) == element_of(b))
    return integer_product(node, a, b, transposed);
  return node.make<MatmulOp>({a, b}, {node.attr("trans_b", int64_t{transposed})});
}

Value f64_constant(NodeView& node, double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  std::string bytes;
  for (int i = 0; i < 8; ++i, bits >>= 8) bytes += static_cast<char>(bits);
  return node.constant(bytes, DType::f64);
}

Result<Value> softmax_f64(NodeView& node, Value x, int64_t axis, bool logarithm) {
  const SmallVector<NamedAttribute> along = {node.attr("axes", Ints(axis)),
                                             node.attr("keepdims", int64_t{1})};
  INVAR_TRY(Value max, node.make<ReduceMaxOp>(x, along));
  INVAR_TRY(Value centred, node.make<SubOp>({x, max}));
  INVAR_TRY(Value weights, node.make<ExpF64Op>(centred));
  INVAR_TRY(Value total, node.make<ReduceSumOp>(weights, along));
  if (!logarithm) return node.make<DivOp>({weights, total});
  INVAR_TRY(total, node.make<LogF64Op>(total));
  return node.make<SubOp>({centred, total});
}

Result<Value> iota_constant(NodeView& node, int64_t n, const Shape& shape) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(i);
  return reshape(node, node.constant(all), shape);
}

Result<int64_t> constant_int(const NodeView& node, unsigned operand, int64_t absent) {
  if (!node.has(operand)) return absent;
  INVAR_TRY(const std::vector<int64_t> list, node.constant_ints(operand));
  if (list.size() == 1) return list[0];
  return bad_input("operand " + std::to_string(operand) + " is not one number");
}

Result<int64_t> enum_attr(NodeView& node, const char* name, llvm::StringRef names, llvm::StringRef standard) {
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
