// The other ONNX nodes of this room, and the types that its operations infer.
#include "ops/move/import.h"

#include <bit>
#include <cmath>

#include "ir/bytes.h"

namespace invar::ir {
namespace {

// ---- what stands beside them

template <class Op>
Result<Value> padded(Node& node, const std::vector<int64_t>& begins, const Shape& shape, Value value = {}) {
  SmallVector<Value> operands = {node.in(0)};
  if (value) operands.push_back(value);
  if (shape == node.shape(0) && llvm::all_of(begins, [](int64_t b) { return b == 0; })) return node.in(0);
  return node.make<Op>(operands, node.attr("begins", llvm::ArrayRef<int64_t>(begins)),
                       tensor_of(shape, element_of(node.in(0))));
}

Status tile(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(std::vector<Polynomial> repeats, node.sizes(1));
  Shape shape = node.shape(0);
  if (repeats.size() != shape.size()) return bad_input("repeats are not one for each dimension");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d].constant().value_or(0) < 0) return bad_input("repeat " + repeats[d].text());
    const std::optional<Polynomial> size = polynomial_of(shape[d]);
    if (!size) return not_covered("a dimension is unknown");
    const std::optional<Polynomial> all = product(*size, repeats[d]);
    if (!all) return bad_input("repeat " + repeats[d].text() + " makes more elements than can be counted");
    shape[d] = Extent::of(*all);
  }
  INVAR_TRY(Value out, padded<PadWrapOp>(node, std::vector<int64_t>(shape.size(), 0), shape));
  return node.replace(out);
}

Status pad(Node& node) {
  Value value;
  if (node.version() < 11) {
    INVAR_CHECK_OK(node.expect(1, 1, {"mode", "pads", "value"}));
    INVAR_TRY(float fill, node.f("value", 0));
    if (fill != 0 || std::signbit(fill)) value = node.constant(fill);
  } else {
    INVAR_CHECK_OK(node.expect(2, node.version() < 18 ? 3 : 4, {"mode"}));
    if (node.has(2)) value = node.in(2);
  }
  INVAR_TRY(std::vector<int64_t> pads, list_of(node, "pads", 1, 11));
  std::vector<int64_t> axes;
  if (node.has(3)) {
    INVAR_TRY(axes, node.constants(3));
  }
  Shape shape = node.shape(0);
  if (!node.has(3))
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (pads.size() != 2 * axes.size()) return bad_input("pads are not two for each axis");
  std::vector<int64_t> begins(shape.size(), 0);
  std::set<int64_t> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(int64_t axis, Node::axis(axes[i], shape.size()));
    if (!seen.insert(axis).second) return bad_input("axis " + std::to_string(axis) + " twice");
    const int64_t begin = pads[i], end = pads[i + axes.size()];
    if (begin == 0 && end == 0) continue;
    Extent& e = shape[axis];
    const std::string pads_of =
        "pads " + std::to_string(begin) + " and " + std::to_string(end) + " of axis " + std::to_string(axis);
    const std::optional<Polynomial> size = polynomial_of(e);
    if (!size) return not_covered("a dimension is unknown");
    if (!e.constant() && (begin < 0 || end < 0)) return not_covered(pads_of + " of " + text_of(e));
    const std::optional<Polynomial> longer = sum(*size, begin);
    const std::optional<Polynomial> all = longer ? sum(*longer, end) : longer;
    if (!all || all->constant().value_or(0) < 0 || (e.constant() && (begin < -e.value || end < -e.value)))
      return bad_input(pads_of);
    e = Extent::of(*all);
    begins[axis] = begin;
  }
  std::string mode = "constant";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("mode"))) mode = given.str();
  Result<Value> out = mode == "constant"  ? padded<PadOp>(node, begins, shape, value)
                      : mode == "edge"    ? padded<PadEdgeOp>(node, begins, shape)
                      : mode == "reflect" ? padded<PadReflectOp>(node, begins, shape)
                      : mode == "wrap"    ? padded<PadWrapOp>(node, begins, shape)
                                          : not_covered("mode \"" + mode + "\"");
  if (!out) return out.error();
  return node.replace(*out);
}

// As many elements around the middle; where there are fewer, zeros on both sides, the odd one behind.
Status center_crop_pad(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axes"}));
  INVAR_TRY(std::vector<int64_t> sizes, node.constants(1));
  INVAR_TRY(std::vector<int64_t> axes, node.ints("axes"));
  Shape shape = node.shape(0);
  if (!node.attribute("axes"))
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (axes.size() != sizes.size()) return bad_input("operand 1 is not one size for each axis");
  std::vector<int64_t> begins(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    INVAR_TRY(const int64_t axis, Node::axis(axes[i], shape.size()));
    Extent& e = shape[static_cast<size_t>(axis)];
    if (!e.constant()) return not_covered("dimension " + text_of(e) + " cropped or padded");
    if (sizes[i] < 0) return bad_input("size " + std::to_string(sizes[i]));
    // floor((size - N) / 2) in front where it grows, floor((N - size) / 2) less where it shrinks.
    begins[static_cast<size_t>(axis)] =
        sizes[i] >= e.value ? (sizes[i] - e.value) / 2 : -((e.value - sizes[i]) / 2);
    e = Extent::of(sizes[i]);
  }
  INVAR_TRY(Value out, padded<PadOp>(node, begins, shape));
  return node.replace(out);
}

// ---- blocks, triangles, sequences

Result<bool> channels_before_blocks(Node& node) {
  auto mode = dyn_cast_or_null<StringAttr>(node.attribute("mode"));
  if (mode && mode.getValue() != "DCR" && mode.getValue() != "CRD")
    return bad_input("mode \"" + mode.str() + "\" is neither DCR nor CRD");
  return mode && mode.getValue() == "CRD";
}
Status depth_to_space(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"blocksize", "mode"}));
  INVAR_TRY(int64_t block, node.i("blocksize", 0));
  INVAR_TRY(const bool crd, channels_before_blocks(node));
  INVAR_TRY(Value out, node.make<DepthToSpaceOp>(
                           node.in(0), {node.attr("blocksize", block), node.attr("crd", int64_t{crd})}));
  return node.replace(out);
}
Status space_to_depth(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"blocksize", "mode"}));
  INVAR_TRY(int64_t block, node.i("blocksize", 0));
  INVAR_TRY(const bool channels_first, channels_before_blocks(node));
  INVAR_TRY(Value out, node.make<SpaceToDepthOp>(node.in(0), node.attr("blocksize", block)));
  if (!channels_first) return node.replace(out);
  // [N, b * b, C, H, W] -> [N, C, b * b, H, W].
  const Shape to = shape_of(out.getType());
  const Extent blocks = Extent::of(block * block);
  const Type element = element_of(out);
  const Shape split = {to[0], blocks, node.shape(0)[1], to[2], to[3]};
  INVAR_TRY(Value parts, node.make<ReshapeOp>(out, {}, tensor_of(split, element)));
  INVAR_TRY(parts,
            node.make<TransposeOp>(parts, node.attr("perm", llvm::ArrayRef<int64_t>({0, 2, 1, 3, 4}))));
  INVAR_TRY(out, node.make<ReshapeOp>(parts, {}, tensor_of(to, element)));
  return node.replace(out);
}

Result<Value> triangle(Node& node, Value x, int64_t upper, int64_t k) {
  return node.make<TriluOp>(x, {node.attr("upper", upper), node.attr("k", k)});
}
Status trilu(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 2, {"upper"}));
  INVAR_TRY(int64_t upper, node.i("upper", 1));
  INVAR_TRY(int64_t k, number_of(node, 1, 0));
  INVAR_TRY(Value out, triangle(node, node.in(0), int64_t{upper != 0}, k));
  return node.replace(out);
}

Status reverse_sequence(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"batch_axis", "time_axis"}));
  INVAR_TRY(int64_t batch, node.i("batch_axis", 1));
  INVAR_TRY(int64_t time, node.i("time_axis", 0));
  if (batch + time != 1 || batch * time != 0) return bad_input("batch_axis and time_axis are not 0 and 1");
  INVAR_TRY(Value out, node.make<ReverseSequenceOp>({node.in(0), node.in(1)}, node.attr("time_axis", time)));
  return node.replace(out);
}

// ---- made of nothing

// The only number of a constant operand.
Result<double> real_of(Node& node, unsigned i) {
  Type element = element_of(node.in(i));
  if (element.isSignlessInteger(64) || element.isSignlessInteger(32)) {
    INVAR_TRY(int64_t v, number_of(node, i, 0));
    return static_cast<double>(v);
  }
  if (!node.bytes(i)) return node.unknown(i);
  INVAR_TRY(Value wide,
            node.make<CastOp>(node.in(i), {}, tensor_of(node.shape(i), node.build().getF64Type())));
  auto known = wide.getDefiningOp<ReproWeightOp>();
  const std::optional<std::string> bytes = known ? bytes_from_hex(*known.getData()) : std::nullopt;
  if (!bytes || bytes->size() != 8) return bad_input("operand " + std::to_string(i) + " is not one number");
  uint64_t bits = 0;
  for (size_t b = 0; b < 8; ++b) bits |= uint64_t{static_cast<uint8_t>((*bytes)[b])} << (8 * b);
  return std::bit_cast<double>(bits);
}

Status one_hot(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"axis"}));
  INVAR_TRY(const double length, real_of(node, 1));
  if (!(length >= 0 && length <= 0x1p40)) return bad_input("depth " + std::to_string(length));
  const auto depth = static_cast<int64_t>(length);
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  Shape shape = node.shape(0);
  INVAR_TRY(int64_t axis, Node::axis(wanted, shape.size() + 1));
  if (node.shape(2) != Shape{Extent::of(2)}) return bad_input("operand 2 is not two values");
  shape.insert(shape.begin() + axis, Extent::of(depth));
  Value index = node.in(0);
  Type element = element_of(index);
  if (!element.isSignlessInteger(64) && !element.isSignlessInteger(32)) {
    INVAR_TRY(index, node.make<CastOp>(index, {}, tensor_of(node.shape(0), node.build().getI64Type())));
  }
  INVAR_TRY(Value out, node.make<OneHotOp>({index, node.in(2)}, node.attr("axis", axis),
                                           tensor_of(shape, element_of(node.in(2)))));
  return node.replace(out);
}

// max(ceil((limit - start) / delta), 0) elements.
Status range(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {}));
  if (element_of(node.in(0)).isSignlessInteger(64)) {
    INVAR_TRY(const std::vector<Polynomial> start, node.sizes(0));
    INVAR_TRY(const std::vector<Polynomial> limit, node.sizes(1));
    INVAR_TRY(const std::vector<Polynomial> delta, node.sizes(2));
    if (start.size() != 1 || limit.size() != 1 || delta.size() != 1)
      return bad_input("an operand is not one number");
    const int64_t step = delta[0].constant().value_or(0);
    const std::optional<Polynomial> way = difference(limit[0], start[0]);
    if (way && !way->constant() && step > 0) {
      // That a bound lies below the start shows when the dimension is computed.
      const std::optional<Polynomial> up = sum(*way, step - 1), n = up ? floor_quotient(*up, step) : up;
      if (!n) return not_covered("a range of " + way->text());
      INVAR_TRY(Value out, node.make<IotaOp>({node.in(0), node.in(2)}, {},
                                             tensor_of({Extent::of(*n)}, node.build().getI64Type())));
      return node.replace(out);
    }
  }
  INVAR_TRY(double start, real_of(node, 0));
  INVAR_TRY(double limit, real_of(node, 1));
  INVAR_TRY(double delta, real_of(node, 2));
  double count = std::ceil((limit - start) / delta);
  if (delta == 0 || !(count <= 0x1p40)) return bad_input("a range without end");
  const Shape shape = {Extent::of(count > 0 ? static_cast<int64_t>(count) : 0)};
  Type element = element_of(node.in(0)), wide = node.build().getI64Type();
  auto counted_as = [&](Type type, Value from, Value step) {
    return node.make<IotaOp>({from, step}, {}, tensor_of(shape, type));
  };
  Value out;
  if (element.isF64()) {
    const int64_t none = 0, one = 1;
    INVAR_TRY(out, counted_as(wide, node.constant(llvm::ArrayRef<int64_t>(none)),
                              node.constant(llvm::ArrayRef<int64_t>(one))));
    INVAR_TRY(out, node.make<CastOp>(out, {}, tensor_of(shape, element)));
    INVAR_TRY(out, node.make<MulOp>({out, node.in(2)}));
    INVAR_TRY(out, node.make<AddOp>({out, node.in(0)}));
  } else if (element.isIntOrIndex() && !element.isSignlessInteger(32) && element != wide) {
    INVAR_TRY(Value from, node.make<CastOp>(node.in(0), {}, tensor_of(node.shape(0), wide)));
    INVAR_TRY(Value step, node.make<CastOp>(node.in(2), {}, tensor_of(node.shape(2), wide)));
    INVAR_TRY(out, counted_as(wide, from, step));
    INVAR_TRY(out, node.make<CastOp>(out, {}, tensor_of(shape, element)));
  } else {
    INVAR_TRY(out, counted_as(element, node.in(0), node.in(2)));
  }
  return node.replace(out);
}

Status constant_of_shape(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"value"}));
  INVAR_TRY(Shape shape, constant_shape(node, 0));
  Value one = node.constant(0.0f);
  if (auto given = dyn_cast_or_null<DictionaryAttr>(node.attribute("value"))) {
    auto code = given.getAs<IntegerAttr>("data_type");
    auto data = given.getAs<StringAttr>("data");
    Type element = code ? onnx_type(node.context(), static_cast<int32_t>(code.getInt())) : Type();
    std::optional<DType> dtype = element ? dtype_of(element) : std::nullopt;
    std::optional<std::string> bytes = data ? bytes_from_hex(data.getValue().str()) : std::nullopt;
    if (!dtype) return not_covered("attribute \"value\": its element type");
    const DType type = dtype.value_or(DType::f32);
    if (!bytes || bytes->size() != size_of(type)) return bad_input("attribute \"value\" is not one element");
    one = node.constant(*bytes, type);
  }
  INVAR_TRY(Value out, expanded(node, one, shape));
  return node.replace(out);
}

// Ones between two triangles.
Status eye_like(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"dtype", "k"}));
  INVAR_TRY(int64_t k, node.i("k", 0));
  INVAR_TRY(int64_t code, node.i("dtype", 0));
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
  INVAR_TRY(Value ones, expanded(node, node.constant(bytes, type), node.shape(0)));
  INVAR_TRY(Value below, triangle(node, ones, 0, k));
  INVAR_TRY(Value out, triangle(node, below, 1, k));
  return node.replace(out);
}

LogicalResult rank_four(std::optional<Location> loc, const Shape& x, int64_t block) {
  if (x.size() != 4) return mismatch(loc, "the operand is not of rank 4");
  if (block < 1 || block > INT32_MAX) return mismatch(loc, "blocksize " + std::to_string(block));
  for (int d = 1; d < 4; ++d)
    if (!x[d].constant()) return refuse(loc, "covered are channels, height and width of constant size");
  return success();
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
    for (size_t d = 0; d < to.size(); ++d)
      if (d != axis && !same(x[d], to[d])) return differ(loc, to[d], x[d], "operands beside the axis");
    const std::optional<Polynomial> before = polynomial_of(to[axis]), more = polynomial_of(x[axis]);
    if (!before || !more) return refuse(loc, "a dimension is unknown");
    const std::optional<Polynomial> both = sum(*before, *more);
    if (!both) return mismatch(loc, "more elements than can be counted");
    to[axis] = Extent::of(*both);
  }
  out.push_back(tensor_of(to, getElementTypeOrSelf(first)));
  return success();
}

LogicalResult DepthToSpaceOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                               SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType());
  const int64_t b = op.getBlocksize();
  if (failed(rank_four(loc, x, b))) return failure();
  if (x[1].value % (b * b)) return mismatch(loc, "the channels do not divide by blocksize^2");
  x[1].value /= b * b;
  for (int d = 2; d < 4; ++d)
    if (__builtin_mul_overflow(x[d].value, b, &x[d].value))
      return mismatch(loc, "blocksize " + std::to_string(b));
  out.push_back(tensor_of(x, getElementTypeOrSelf(op.getX().getType())));
  return success();
}

LogicalResult SpaceToDepthOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                               SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType());
  const int64_t b = op.getBlocksize();
  if (failed(rank_four(loc, x, b))) return failure();
  if (x[2].value % b || x[3].value % b) return mismatch(loc, "height and width do not divide by blocksize");
  x[2].value /= b, x[3].value /= b;
  if (__builtin_mul_overflow(x[1].value, b * b, &x[1].value))
    return mismatch(loc, "blocksize " + std::to_string(b));
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
  const Extent& batch = x[op.getTimeAxis() ? 0 : 1];
  if (!same(batch, lengths[0])) return differ(loc, batch, lengths[0], "sequences and lengths");
  out.push_back(op.getX().getType());
  return success();
}

void import_move(Rooms& rooms) {
  rooms.carries<TransposeOp, SliceOp, ExpandOp, ConcatOp, PadOp, PadEdgeOp, PadWrapOp>();
  rooms.on("Transpose", 1, transpose);
  rooms.on("Slice", 1, slice);
  rooms.on("Split", 2, split);
  rooms.on("Concat", 4, concat);
  rooms.on("Expand", 8, expand);
  rooms.on("Tile", 6, tile);
  rooms.on("Pad", 2, pad);
  rooms.on("CenterCropPad", 18, center_crop_pad);
  rooms.on("DepthToSpace", 1, depth_to_space);
  rooms.on("SpaceToDepth", 1, space_to_depth);
  rooms.on("Trilu", 14, trilu);
  rooms.on("ReverseSequence", 10, reverse_sequence);
  rooms.on("OneHot", 9, one_hot);
  rooms.on("Range", 11, range);
  rooms.on("ConstantOfShape", 9, constant_of_shape);
  rooms.on("EyeLike", 9, eye_like);
  rooms.turn(turn);
}

}  // namespace invar::ir
