// Lowering of DepthToSpace, ReverseSequence, ConstantOfShape, EyeLike, and the type inference of
// the room. The other operators are in import/.
#include "compiler/room_api.h"
#include "ops/move/attributes.h"
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

Status check_block_operand(const Shape& x, int64_t block) {
  if (x.size() != 4) return bad_input("the operand is not of rank 4");
  if (block < 1) return bad_input("blocksize " + std::to_string(block));
  if (block > INT32_MAX) return not_covered("blocksize " + std::to_string(block));
  return {};
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
Error block_mismatch(const Dim& x, const DimText& why) {
  return x.constant() ? bad_input(why) : not_covered(why + ": " + text_of(x));
}

}  // namespace

Result<ValueType> infer_transpose(InferredCall& in, const ops::TransposeAttributes& a) {
  const Shape& from = in[0].shape;
  const auto rank = static_cast<int64_t>(from.size());
  std::set<int64_t> seen;
  Shape to;
  for (int64_t i = 0; i < a.perm.size; ++i)
    if (const int64_t d = a.perm[i]; d >= 0 && d < rank && seen.insert(d).second)
      to.push_back(from[static_cast<size_t>(d)]);
  if (to.size() != from.size() || a.perm.size != rank)
    return bad_input("perm is not a permutation of the operand's dimensions");
  return ValueType{in[0].dtype, to};
}

Result<ValueType> infer_concat(InferredCall& in, const ops::ConcatAttributes& a) {
  if (!in.has(0)) return bad_input("there is no operand");
  ValueType to = in[0];
  const size_t axis = static_cast<size_t>(a.axis);
  if (axis >= to.shape.size()) return bad_input("axis " + std::to_string(axis) + " is outside");
  for (size_t i = 1; i < in.size(); ++i) {
    const Shape& x = in[i].shape;
    if (x.size() != to.shape.size()) return bad_input("operands of different rank");
    if (in[i].dtype != to.dtype) return bad_input("operands of different element types");
    for (size_t d = 0; d < x.size(); ++d) {
      if (d == axis || known_equal(x[d], to.shape[d])) continue;
      if (!may_be_equal(x[d], to.shape[d]))
        return in.unequal_dims(to.shape[d], x[d], "operands beside the axis");
      if (x[d].constant()) to.shape[d] = x[d];
    }
    const std::optional<DimExpr> before = dim_expr_of(to.shape[axis]), more = dim_expr_of(x[axis]);
    if (!before || !more) return not_covered("a dimension is unknown");
    const std::optional<DimExpr> both = sum(*before, *more);
    if (!both) return not_covered("more elements than can be counted");
    to.shape[axis] = Dim::of(*both);
  }
  return to;
}

Result<ValueType> infer_depth_to_space(InferredCall& in, const ops::DepthToSpaceAttributes& a) {
  const Shape& x = in[0].shape;
  const int64_t b = a.blocksize;
  INVAR_CHECK_OK(check_block_operand(x, b));
  const std::optional<Dim> channels = divide_dim(x[1], b * b), rows = multiply_dim(x[2], b),
                           columns = multiply_dim(x[3], b);
  if (!channels) return block_mismatch(x[1], "the channels do not divide by blocksize^2");
  if (!rows || !columns) return not_covered("more elements than can be counted");
  return ValueType{in[0].dtype, {x[0], *channels, *rows, *columns}};
}

Result<ValueType> infer_space_to_depth(InferredCall& in, const ops::SpaceToDepthAttributes& a) {
  const Shape& x = in[0].shape;
  const int64_t b = a.blocksize;
  INVAR_CHECK_OK(check_block_operand(x, b));
  const std::optional<Dim> channels = multiply_dim(x[1], b * b), rows = divide_dim(x[2], b),
                           columns = divide_dim(x[3], b);
  if (!rows || !columns)
    return block_mismatch(x[rows ? 3 : 2], "height and width do not divide by blocksize");
  if (!channels) return not_covered("more elements than can be counted");
  return ValueType{in[0].dtype, {x[0], *channels, *rows, *columns}};
}

Result<ValueType> infer_trilu(InferredCall& in, const ops::TriluAttributes&) {
  if (in[0].shape.size() < 2) return bad_input("the operand has no matrices");
  return in[0];
}

Result<ValueType> infer_reverse_sequence(InferredCall& in, const ops::ReverseSequenceAttributes& a) {
  const Shape &x = in[0].shape, &lengths = in[1].shape;
  if (x.size() < 2 || lengths.size() != 1) return bad_input("an operand of rank 2 and lengths of rank 1");
  const Dim& batch = x[a.time_axis ? 0 : 1];
  if (!may_be_equal(batch, lengths[0])) return in.unequal_dims(batch, lengths[0], "sequences and lengths");
  return in[0];
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
