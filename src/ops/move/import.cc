// Lowering of DepthToSpace, ReverseSequence, ConstantOfShape, EyeLike, and the type inference of
// the room. The other operators are in import/.
#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/op_builder.h"
#include "ops/move/import/rules.h"

namespace invar::compiler {
namespace {

// ---- blocks and sequences

Result<bool> is_crd_mode(NodeView& node) {
  auto mode = dyn_cast_or_null<StringAttr>(node.attribute("mode"));
  if (mode && mode.getValue() != "DCR" && mode.getValue() != "CRD")
    return bad_input("mode \"" + mode.str() + "\" is neither DCR nor CRD");
  return mode && mode.getValue() == "CRD";
}
Status depth_to_space(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"blocksize", "mode"}));
  INVAR_TRY(int64_t block, node.int_attr("blocksize", 0));
  INVAR_TRY(const bool crd, is_crd_mode(node));
  INVAR_TRY(Value out, node.make<DepthToSpaceOp>(
                           node.in(0), {node.attr("blocksize", block), node.attr("crd", int64_t{crd})}));
  return node.replace(out);
}
Status space_to_depth(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"blocksize", "mode"}));
  INVAR_TRY(int64_t block, node.int_attr("blocksize", 0));
  INVAR_TRY(const bool channels_first, is_crd_mode(node));
  INVAR_TRY(Value out, node.make<SpaceToDepthOp>(node.in(0), node.attr("blocksize", block)));
  if (!channels_first) return node.replace(out);
  // [N, b * b, C, H, W] -> [N, C, b * b, H, W].
  const Shape to = shape_of(out.getType());
  const Dim blocks = Dim::of(block * block);
  const Type element = element_of(out);
  const Shape split = {to[0], blocks, node.shape(0)[1], to[2], to[3]};
  INVAR_TRY(Value parts, node.make<ReshapeOp>(out, {}, tensor_of(split, element)));
  INVAR_TRY(parts, node.make<TransposeOp>(parts, node.attr("perm", Ints({0, 2, 1, 3, 4}))));
  INVAR_TRY(out, node.make<ReshapeOp>(parts, {}, tensor_of(to, element)));
  return node.replace(out);
}

Status reverse_sequence(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"batch_axis", "time_axis"}));
  INVAR_TRY(int64_t batch, node.int_attr("batch_axis", 1));
  INVAR_TRY(int64_t time, node.int_attr("time_axis", 0));
  if (batch + time != 1 || batch * time != 0) return bad_input("batch_axis and time_axis are not 0 and 1");
  INVAR_TRY(Value out, node.make<ReverseSequenceOp>({node.in(0), node.in(1)}, node.attr("time_axis", time)));
  return node.replace(out);
}

// ---- constants of a computed shape

Status constant_of_shape(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"value"}));
  INVAR_TRY(Shape shape, shape_operand(node, 0));
  Value one = node.constant(0.0f);
  if (auto given = dyn_cast_or_null<DictionaryAttr>(node.attribute("value"))) {
    auto code = given.getAs<IntegerAttr>("data_type");
    auto data = given.getAs<StringAttr>("data");
    Type element = code ? onnx_type(node.context(), static_cast<int32_t>(code.getInt())) : Type();
    std::optional<DType> dtype = element ? dtype_of(element) : std::nullopt;
    std::optional<std::string> bytes = data ? std::optional(data.getValue().str()) : std::nullopt;
    if (!dtype) return not_covered("attribute \"value\": its element type");
    const DType type = dtype.value_or(DType::f32);
    if (!bytes || bytes->size() != size_of(type)) return bad_input("attribute \"value\" is not one element");
    one = node.constant(*bytes, type);
  }
  INVAR_TRY(Value out, expand(node, one, shape));
  return node.replace(out);
}

// Ones on a diagonal: a tensor of ones without its strict triangles.
Status eye_like(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"dtype", "k"}));
  INVAR_TRY(int64_t k, node.int_attr("k", 0));
  INVAR_TRY(int64_t code, node.int_attr("dtype", 0));
  Type element = code ? onnx_type(node.context(), static_cast<int32_t>(code)) : element_of(node.in(0));
  std::optional<DType> dtype = element ? dtype_of(element) : std::nullopt;
  if (node.shape(0).size() != 2) return bad_input("operand 0 is not of rank 2");
  if (!dtype) return not_covered("attribute \"dtype\": the element type");
  const DType type = dtype.value_or(DType::f32);
  uint64_t bits = type == DType::f32    ? 0x3f800000
                  : type == DType::bf16 ? 0x3f80
                  : type == DType::f16  ? 0x3c00
                  : type == DType::f64  ? 0x3ff0000000000000
                                        : 1;
  std::string bytes(size_of(type), '\0');
  for (char& b : bytes) b = static_cast<char>(bits), bits >>= 8;
  INVAR_TRY(Value ones, expand(node, node.constant(bytes, type), node.shape(0)));
  INVAR_TRY(Value below, make_trilu(node, ones, 0, k));
  INVAR_TRY(Value out, make_trilu(node, below, 1, k));
  return node.replace(out);
}

LogicalResult check_block_operand(std::optional<Location> loc, const Shape& x, int64_t block) {
  if (x.size() != 4) return mismatch(loc, "the operand is not of rank 4");
  if (block < 1) return mismatch(loc, "blocksize " + std::to_string(block));
  if (block > INT32_MAX) return refuse(loc, "blocksize " + std::to_string(block));
  return success();
}
// A dimension times a number; nullopt on overflow.
std::optional<Dim> multiply_dim(const Dim& x, int64_t by) {
  const std::optional<DimExpr> size = dim_expr_of(x), all = size ? product(*size, by) : size;
  return all ? std::optional(Dim::of(*all)) : std::nullopt;
}
// A dimension over a number; nullopt unless it is known to divide.
std::optional<Dim> divide_dim(const Dim& x, int64_t by) {
  const std::optional<DimExpr> size = dim_expr_of(x), part = size ? exact_div(*size, by) : size;
  return part ? std::optional(Dim::of(*part)) : std::nullopt;
}
LogicalResult block_mismatch(std::optional<Location> loc, const Dim& x, const Twine& why) {
  return x.constant() ? mismatch(loc, why) : refuse(loc, why + ": " + text_of(x));
}

}  // namespace

LogicalResult TransposeOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                            SmallVectorImpl<Type>& out) {
  Shape from = shape_of(op.getX().getType()), to(from.size());
  std::set<int64_t> seen;
  for (int64_t d : op.getPerm())
    if (d >= 0 && d < static_cast<int64_t>(from.size()) && seen.size() < to.size()) {
      to[seen.size()] = from[d];
      seen.insert(d);
    }
  if (seen.size() != from.size() || op.getPerm().size() != from.size())
    return mismatch(loc, "perm is not a permutation of the operand's dimensions");
  out.push_back(tensor_of(to, getElementTypeOrSelf(op.getX().getType())));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                         SmallVectorImpl<Type>& out) {
  Type first = op.getOperands()[0].getType();
  Shape to = shape_of(first);
  const size_t axis = static_cast<size_t>(op.getAxis());
  if (axis >= to.size()) return mismatch(loc, "axis " + std::to_string(axis) + " is outside");
  for (Value v : op.getOperands().drop_front()) {
    Shape x = shape_of(v.getType());
    if (x.size() != to.size()) return mismatch(loc, "operands of different rank");
    if (getElementTypeOrSelf(v.getType()) != getElementTypeOrSelf(first))
      return mismatch(loc, "operands of different element types");
    for (size_t d = 0; d < to.size(); ++d) {
      if (d == axis || known_equal(x[d], to[d])) continue;
      if (!may_be_equal(x[d], to[d])) return unequal_dims(loc, to[d], x[d], "operands beside the axis");
      if (x[d].constant()) to[d] = x[d];
    }
    const std::optional<DimExpr> before = dim_expr_of(to[axis]), more = dim_expr_of(x[axis]);
    if (!before || !more) return refuse(loc, "a dimension is unknown");
    const std::optional<DimExpr> both = sum(*before, *more);
    if (!both) return refuse(loc, "more elements than can be counted");
    to[axis] = Dim::of(*both);
  }
  out.push_back(tensor_of(to, getElementTypeOrSelf(first)));
  return success();
}

LogicalResult DepthToSpaceOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                               SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType());
  const int64_t b = op.getBlocksize();
  if (failed(check_block_operand(loc, x, b))) return failure();
  const std::optional<Dim> channels = divide_dim(x[1], b * b), rows = multiply_dim(x[2], b),
                           columns = multiply_dim(x[3], b);
  if (!channels) return block_mismatch(loc, x[1], "the channels do not divide by blocksize^2");
  if (!rows || !columns) return refuse(loc, "more elements than can be counted");
  x = {x[0], *channels, *rows, *columns};
  out.push_back(tensor_of(x, getElementTypeOrSelf(op.getX().getType())));
  return success();
}

LogicalResult SpaceToDepthOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                               SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType());
  const int64_t b = op.getBlocksize();
  if (failed(check_block_operand(loc, x, b))) return failure();
  const std::optional<Dim> channels = multiply_dim(x[1], b * b), rows = divide_dim(x[2], b),
                           columns = divide_dim(x[3], b);
  if (!rows || !columns)
    return block_mismatch(loc, x[rows ? 3 : 2], "height and width do not divide by blocksize");
  if (!channels) return refuse(loc, "more elements than can be counted");
  x = {x[0], *channels, *rows, *columns};
  out.push_back(tensor_of(x, getElementTypeOrSelf(op.getX().getType())));
  return success();
}

LogicalResult TriluOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                        SmallVectorImpl<Type>& out) {
  if (shape_of(op.getX().getType()).size() < 2) return mismatch(loc, "the operand has no matrices");
  out.push_back(op.getX().getType());
  return success();
}

LogicalResult ReverseSequenceOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                  SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType()), lengths = shape_of(op.getLengths().getType());
  if (x.size() < 2 || lengths.size() != 1) return mismatch(loc, "an operand of rank 2 and lengths of rank 1");
  const Dim& batch = x[op.getTimeAxis() ? 0 : 1];
  if (!may_be_equal(batch, lengths[0])) return unequal_dims(loc, batch, lengths[0], "sequences and lengths");
  out.push_back(op.getX().getType());
  return success();
}

void import_move(RuleRegistry& registry) {
  import_move_slices(registry);
  import_move_permutations(registry);
  import_move_pads(registry);
  import_move_index_generated(registry);
  registry.moves_elements<TransposeOp, SliceOp, ExpandOp, ConcatOp, PadOp, PadEdgeOp, PadWrapOp>();
  registry.add_rule("DepthToSpace", 1, depth_to_space);
  registry.add_rule("SpaceToDepth", 1, space_to_depth);
  registry.add_rule("ReverseSequence", 10, reverse_sequence);
  registry.add_rule("ConstantOfShape", 9, constant_of_shape);
  registry.add_rule("EyeLike", 9, eye_like, "T>*");
}

}  // namespace invar::compiler
