// Quantization that is decomposed: 16-bit integers; convolutions of 8-bit integers.
#include "ops/quantize/import/decompose_quantized.h"

#include <bit>
#include <cmath>
#include <limits>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// ---- 16-bit integers (quantize.5): the steps of quantize.3 and quantize.4 as operations

// Scales or zero points in a shape that broadcasts to operand 0 (quantize.2).
Result<Value> broadcast_scales(NodeView& node, Value scales) {
  INVAR_TRY(int64_t wanted, node.int_attr("axis", 1));
  INVAR_TRY(int64_t block, node.int_attr("block_size", 0));
  const Shape x = node.shape(0), shape = shape_of(scales.getType());
  if (!block && (shape.empty() || (shape.size() == 1 && shape[0] == Dim::of(1)))) return scales;
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, x.size()));
  const Dim along = x[static_cast<size_t>(axis)];
  if (!block) {
    if (shape != Shape{along}) return bad_input("scales of shape " + text_of(shape));
    Shape line(x.size(), Dim::of(1));
    line[static_cast<size_t>(axis)] = along;
    return reshape(node, scales, line);
  }
  Shape blocks = x;
  if (!along.constant()) return not_covered("an open dimension cut into blocks");
  blocks[static_cast<size_t>(axis)] = Dim::of(along.value / block + (along.value % block != 0));
  if (shape != blocks) return bad_input("scales of shape " + text_of(shape));
  std::vector<int64_t> from;
  for (int64_t i = 0; i < along.value; ++i) from.push_back(i / block);
  return node.make<GatherOp>({scales, node.constant(Ints(from))}, node.attr("axis", axis));
}

// ---- constants of numbers that no tensor of a program has (quantize.8)

// The number of a byte that has so many bits of a mantissa, and above them an exponent. finite:
// there is no infinity, and one pattern, or one of each sign, is NaN; unsigned_zero: it is that of
// -0, and the bias is one larger.
uint32_t widened_byte(unsigned byte, int mantissa, bool finite, bool unsigned_zero) {
  constexpr uint32_t kNan = 0x7fc00000;
  const int bits = 7 - mantissa, bias = (1 << (bits - 1)) - (unsigned_zero ? 0 : 1);
  const int low = static_cast<int>(byte) & ((1 << mantissa) - 1),
            high = static_cast<int>(byte & 0x7f) >> mantissa;
  if (unsigned_zero && byte == 0x80) return kNan;
  const bool top = high == (1 << bits) - 1;
  if (finite && !unsigned_zero && (byte & 0x7f) == 0x7f) return kNan;
  if (!finite && top && low != 0) return kNan;
  const float size = !finite && top ? std::numeric_limits<float>::infinity()
                     : high == 0
                         ? std::ldexp(static_cast<float>(low), 1 - bias - mantissa)
                         : std::ldexp(static_cast<float>(low + (1 << mantissa)), high - bias - mantissa);
  return std::bit_cast<uint32_t>(byte & 0x80 ? -size : size);
}

}  // namespace

// TensorProto.DataType of elements that MLIR lacks; 0 for others.
int32_t packed_code(Value v) {
  const auto element = dyn_cast<ElementType>(element_of(v));
  return element ? element.getCode() : 0;
}

// The lower half of a byte comes first.
Result<Value> integers_of_4_bits(NodeView& node, Value x) {
  const Shape shape = shape_of(x.getType());
  int64_t n = 1;
  for (const Dim& d : shape)
    if (!d.constant() || __builtin_mul_overflow(n, d.value, &n)) return not_covered("a size that is open");
  const Dim pairs = Dim::of((n + 1) / 2);
  INVAR_TRY(const Value bytes, constant_bytes(node, x, {pairs}));
  const bool is_signed = packed_code(x) == 22;
  INVAR_TRY(Value all, unpacked_integers(node, bytes, 4));
  INVAR_TRY(all, slice(node, all, 0, 0, n));
  if (is_signed) {  // two's complement: (v ^ 8) - 8
    INVAR_TRY(all, node.make<BitwiseXorOp>({all, node.constant(llvm::StringRef("\x08"), DType::u8)}));
    INVAR_TRY(all, cast_to(node, all, node.builder().getF32Type()));
    INVAR_TRY(all, node.make<SubOp>({all, node.constant(8.0f)}));
    INVAR_TRY(all, cast_to(node, all, node.builder().getIntegerType(8)));
  }
  return reshape(node, all, shape);
}

// x * s; zero points are zeros.
Result<Value> dequantize_float8(NodeView& node) {
  const int32_t code = packed_code(node.in(0));
  const bool e5m2 = code == 19 || code == 20, unsigned_zero = code == 18 || code == 20;
  if (node.has(2)) {
    std::optional<std::string> zeros = node.constant_bytes(2);
    if (!zeros || zeros->find_first_not_of('\0') != std::string::npos)
      return not_covered("zero points of float8 that are not zeros in the model file");
  }
  std::string table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const uint32_t bits = widened_byte(byte, e5m2 ? 2 : 3, code != 19, unsigned_zero);
    for (int i = 0; i < 4; ++i) table += static_cast<char>(bits >> 8 * i & 0xff);
  }
  INVAR_TRY(Value x, constant_bytes(node, node.in(0), node.shape(0)));
  INVAR_TRY(x, cast_to(node, x, node.builder().getI64Type()));
  INVAR_TRY(x, node.make<GatherOp>({node.constant(table, DType::f32, {256}), x}));
  INVAR_TRY(const Value scale, broadcast_scales(node, node.in(1)));
  return node.make<MulOp>({x, scale});
}

// Zero points in the shape of the scales. A list of one element equals a scalar.
Result<Value> matched_zero_points(NodeView& node, Value zeros, Value scales) {
  const Shape shape = shape_of(scales.getType()), given = shape_of(zeros.getType());
  const Shape one, list = {Dim::of(1)};
  if ((shape == one || shape == list) && (given == one || given == list)) return reshape(node, zeros, shape);
  if (given != shape) return bad_input("zero points and scales differ in shape");
  return zeros;
}

// round(x / s) + z. Beyond 2^24 the sum may round, but such results saturate.
Result<Value> quantize_16bit(NodeView& node, Type element) {
  Type f32 = node.builder().getF32Type();
  INVAR_TRY(Value scale, broadcast_scales(node, node.in(1)));
  INVAR_TRY(Value steps, node.make<DivOp>({node.in(0), scale}));
  INVAR_TRY(Value none, node.make<IsnanOp>(steps));
  INVAR_TRY(steps, node.make<RoundOp>(steps));
  INVAR_TRY(steps, node.make<WhereOp>({none, node.constant(0.0f), steps}));
  if (node.has(2)) {
    INVAR_TRY(Value zero, broadcast_scales(node, node.in(2)));
    INVAR_TRY(zero, cast_to(node, zero, f32));
    INVAR_TRY(steps, node.make<AddOp>({steps, zero}));
  }
  return cast_to(node, steps, element);
}

// (q - z) * s: the difference has 17 bits, so it is exact in f32.
Result<Value> dequantize_16bit(NodeView& node) {
  Type f32 = node.builder().getF32Type();
  INVAR_TRY(Value x, cast_to(node, node.in(0), f32));
  if (node.has(2)) {
    INVAR_TRY(Value zero, matched_zero_points(node, node.in(2), node.in(1)));
    INVAR_TRY(zero, broadcast_scales(node, zero));
    INVAR_TRY(zero, cast_to(node, zero, f32));
    INVAR_TRY(x, node.make<SubOp>({x, zero}));
  }
  INVAR_TRY(Value scale, broadcast_scales(node, node.in(1)));
  return node.make<MulOp>({x, scale});
}

// The 32-bit convolution of operand 0 with the operand `weights`, plus a bias [M] (conv_integer).
Result<Value> integer_conv(NodeView& node, unsigned weights, Value x_zero, Value w_zero, Value bias) {
  const Value x = node.in(0), w = node.in(weights);
  const Shape from = node.shape(0), shape = node.shape(weights);
  if (shape.size() != from.size() || shape.size() < 3) return bad_input("operand and weights differ in rank");
  std::vector<int64_t> kernel;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].constant() || !from[1].constant())
      return not_covered("channels or a kernel of unknown size");
  for (size_t i = 2; i < shape.size(); ++i) kernel.push_back(shape[i].value);
  for (const Value factor : {x, w})
    if (const Type e = element_of(factor); !e.isIntOrIndex() || e.getIntOrFloatBitWidth() != 8)
      return not_covered("covered are factors of int8 and uint8");
  INVAR_TRY(Window window, parse_window(node, kernel));
  INVAR_TRY(AutoPad how, auto_pad(node));
  INVAR_CHECK_OK(resolve_pads(node, how, window));
  INVAR_TRY(const int64_t groups, node.int_attr("group", 1));
  const Shape one, single = {Dim::of(1)};
  if (x_zero && shape_of(x_zero.getType()) != one && shape_of(x_zero.getType()) != single)
    return not_covered("more than one zero point of operand 0");
  if (w_zero)
    if (const Shape z = shape_of(w_zero.getType()); z != one && z != single && z != Shape{shape[0]})
      return bad_input("zero points that are not one for each channel of the result");
  for (auto [zero, factor] : {std::pair(x_zero, x), std::pair(w_zero, w)})
    if (zero && element_of(zero) != element_of(factor))
      return bad_input("a zero point of another type than its factor");
  if (!bias)
    bias = node.constant(std::string(static_cast<size_t>(shape[0].value) * 4, '\0'), DType::i32,
                         {shape[0].value});
  if (element_of(bias) != node.builder().getI32Type()) return bad_input("the bias is not of int32");
  SmallVector<Value> in = {x, w, bias};
  if (w_zero && !x_zero) x_zero = node.constant(llvm::StringRef("\0", 1), *dtype_of(element_of(x)));
  if (x_zero) in.push_back(x_zero);
  if (w_zero) in.push_back(w_zero);
  return node.make<ConvIntegerOp>(
      in, {node.attr("strides", Ints(window.strides)), node.attr("dilations", Ints(window.dilations)),
           node.attr("pads", Ints(window.pads)), node.attr("groups", groups)});
}

}  // namespace invar::compiler
