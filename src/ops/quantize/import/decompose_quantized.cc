// Quantization that is decomposed: 16-bit integers, and exact convolutions of 8-bit integers.
#include "ops/quantize/import/decompose_quantized.h"

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

// ---- convolutions of 8-bit integers (quantize.6)

// 8-bit integers minus their zero point, as f32.
Result<Value> subtract_zero_point(NodeView& node, Value x, Value zero) {
  Type element = element_of(x), f32 = node.builder().getF32Type();
  if (!element.isIntOrIndex() || element.getIntOrFloatBitWidth() != 8)
    return not_covered("covered are factors of int8 and uint8");
  INVAR_TRY(x, cast_to(node, x, f32));
  if (!zero) return x;
  if (element_of(zero) != element) return bad_input("a zero point of another type than its factor");
  INVAR_TRY(zero, cast_to(node, zero, f32));
  return node.make<SubOp>({x, zero});
}

// Channels [start, start + size) of each group.
Result<Value> slice_group_channels(NodeView& node, Value x, int64_t groups, int64_t start, int64_t size) {
  if (groups == 1) return slice(node, x, 1, start, size);
  Shape shape = shape_of(x.getType()), grouped = shape;
  grouped[1] = Dim::of(shape[1].value / groups);
  grouped.insert(grouped.begin() + 1, Dim::of(groups));
  INVAR_TRY(x, reshape(node, x, grouped));
  INVAR_TRY(x, slice(node, x, 2, start, size));
  shape[1] = Dim::of(groups * size);
  return reshape(node, x, shape);
}

}  // namespace

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

// One number, or one per channel, in a shape that broadcasts to a result of this rank.
Result<Value> reshape_to_channels(NodeView& node, Value x, size_t rank) {
  Shape shape = shape_of(x.getType());
  if (shape.empty() || shape[0] == Dim::of(1)) return reshape(node, x, {});
  if (shape.size() != 1) return bad_input("numbers of shape " + text_of(shape) + " for the channels");
  shape.resize(rank - 1, Dim::of(1));
  return reshape(node, x, shape);
}

// A convolution of operand 0 with the operand `weights`. A product of two differences is at most
// 255^2, so sums of up to 258 products stay below 2^24 and are exact in f32; longer sums are split
// by channels and added as i32.
Result<Value> integer_conv(NodeView& node, unsigned weights, Value x, Value x_zero, Value w, Value w_zero) {
  constexpr int64_t kMaxProducts = 258;
  const Shape from = node.shape(0), shape = node.shape(weights);
  if (shape.size() != from.size()) return bad_input("operand and weights differ in rank");
  std::vector<int64_t> kernel;
  int64_t taps = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    if (!shape[i].constant() || !from[1].constant())
      return not_covered("channels or a kernel of unknown size");
  for (size_t i = 2; i < shape.size(); ++i) {
    kernel.push_back(shape[i].value);
    if (__builtin_mul_overflow(taps, shape[i].value, &taps) || taps < 1 || taps > kMaxProducts)
      return not_covered("a kernel of no or more than 258 taps");
  }
  INVAR_TRY(Window window, parse_window(node, kernel));
  INVAR_TRY(AutoPad how, auto_pad(node));
  INVAR_CHECK_OK(resolve_pads(node, how, window));
  INVAR_TRY(const int64_t groups, node.int_attr("group", 1));
  const int64_t all = shape[1].value, step = kMaxProducts / taps;
  if (groups < 1 || from[1].value % groups || from[1].value / groups != all)
    return bad_input("channels do not divide into " + std::to_string(groups) + " groups");
  if (w_zero) {
    INVAR_TRY(w_zero, reshape_to_channels(node, w_zero, shape.size() + 1));
    if (const Shape each = shape_of(w_zero.getType()); !each.empty() && each[0] != shape[0])
      return bad_input("zero points that are not one for each channel of the result");
  }
  if (x_zero) {
    INVAR_TRY(x_zero, reshape_to_channels(node, x_zero, 1));
    if (!shape_of(x_zero.getType()).empty()) return not_covered("more than one zero point of operand 0");
  }
  INVAR_TRY(x, subtract_zero_point(node, x, x_zero));
  INVAR_TRY(w, subtract_zero_point(node, w, w_zero));
  Value total;
  for (int64_t at = 0; at < all || !total; at += step) {
    const int64_t size = std::min(step, all - at);
    INVAR_TRY(Value some, slice_group_channels(node, x, groups, at, size));
    INVAR_TRY(Value rows, slice(node, w, 1, at, size));
    INVAR_TRY(Value sum, node.make<ConvOp>({some, rows}, {node.attr("strides", Ints(window.strides)),
                                                          node.attr("dilations", Ints(window.dilations)),
                                                          node.attr("pads", Ints(window.pads)),
                                                          node.attr("groups", groups)}));
    INVAR_TRY(sum, cast_to(node, sum, node.builder().getI32Type()));
    if (total) {
      INVAR_TRY(sum, node.make<AddOp>({total, sum}));
    }
    total = sum;
  }
  return total;
}

}  // namespace invar::compiler
