// What quantisation is made of besides its own kernels: integers of 16 bits and exact convolutions of bytes.
#pragma once
#include "compiler/lowering/op_builder.h"
#include "compiler/lowering/builders/sliding_window.h"

namespace invar::compiler {
namespace {

// ---- integers of 16 bits (quantize.5): the steps of quantize.3 and quantize.4 as operations

Result<Value> as(Node& node, Value x, Type element) {
  if (element_of(x) == element) return x;
  return node.make<CastOp>(x, {}, tensor_of(shape_of(x.getType()), element));
}
// Of zero points those that fit the scales. One element is one for the tensor, as a scalar and as a list.
Result<Value> zero_points(Node& node, Value zeros, Value scales) {
  const Shape shape = shape_of(scales.getType()), given = shape_of(zeros.getType());
  const Shape one, list = {Extent::of(1)};
  if ((shape == one || shape == list) && (given == one || given == list)) return shaped(node, zeros, shape);
  if (given != shape) return bad_input("zero points and scales differ in shape");
  return zeros;
}
// Scales or zero points so that they broadcast to operand 0 (quantize.2).
Result<Value> beside(Node& node, Value scales) {
  INVAR_TRY(int64_t wanted, node.i("axis", 1));
  INVAR_TRY(int64_t block, node.i("block_size", 0));
  const Shape x = node.shape(0), shape = shape_of(scales.getType());
  if (!block && (shape.empty() || (shape.size() == 1 && shape[0] == Extent::of(1)))) return scales;
  INVAR_TRY(int64_t axis, Node::axis(wanted, x.size()));
  const Extent along = x[static_cast<size_t>(axis)];
  if (!block) {
    if (shape != Shape{along}) return bad_input("scales of shape " + text_of(shape));
    Shape line(x.size(), Extent::of(1));
    line[static_cast<size_t>(axis)] = along;
    return shaped(node, scales, line);
  }
  Shape blocks = x;
  if (!along.constant()) return not_covered("an open dimension cut into blocks");
  blocks[static_cast<size_t>(axis)] = Extent::of(along.value / block + (along.value % block != 0));
  if (shape != blocks) return bad_input("scales of shape " + text_of(shape));
  std::vector<int64_t> from;
  for (int64_t i = 0; i < along.value; ++i) from.push_back(i / block);
  return node.make<GatherOp>({scales, node.constant(Sizes(from))}, node.attr("axis", axis));
}
// x / s, rounded, plus z. Beyond 2^24 the sum may round, but what is there saturates.
Result<Value> quantized_words(Node& node, Type element) {
  Type f32 = node.build().getF32Type();
  INVAR_TRY(Value scale, beside(node, node.in(1)));
  INVAR_TRY(Value steps, node.make<DivOp>({node.in(0), scale}));
  INVAR_TRY(Value none, node.make<IsnanOp>(steps));
  INVAR_TRY(steps, node.make<RoundOp>(steps));
  INVAR_TRY(steps, node.make<WhereOp>({none, node.constant(0.0f), steps}));
  if (node.has(2)) {
    INVAR_TRY(Value zero, beside(node, node.in(2)));
    INVAR_TRY(zero, as(node, zero, f32));
    INVAR_TRY(steps, node.make<AddOp>({steps, zero}));
  }
  return as(node, steps, element);
}
// (q - z) s: the difference has 17 bits.
Result<Value> dequantized_words(Node& node) {
  Type f32 = node.build().getF32Type();
  INVAR_TRY(Value x, as(node, node.in(0), f32));
  if (node.has(2)) {
    INVAR_TRY(Value zero, zero_points(node, node.in(2), node.in(1)));
    INVAR_TRY(zero, beside(node, zero));
    INVAR_TRY(zero, as(node, zero, f32));
    INVAR_TRY(x, node.make<SubOp>({x, zero}));
  }
  INVAR_TRY(Value scale, beside(node, node.in(1)));
  return node.make<MulOp>({x, scale});
}

// ---- convolutions of bytes (quantize.6)

// A number for each channel of a result of this rank, or one.
Result<Value> along_channels(Node& node, Value x, size_t rank) {
  Shape shape = shape_of(x.getType());
  if (shape.empty() || shape[0] == Extent::of(1)) return shaped(node, x, {});
  if (shape.size() != 1) return bad_input("numbers of shape " + text_of(shape) + " for the channels");
  shape.resize(rank - 1, Extent::of(1));
  return shaped(node, x, shape);
}

// Bytes without their zero point, as f32.
Result<Value> centred(Node& node, Value x, Value zero) {
  Type element = element_of(x), f32 = node.build().getF32Type();
  if (!element.isIntOrIndex() || element.getIntOrFloatBitWidth() != 8)
    return not_covered("covered are factors of int8 and uint8");
  INVAR_TRY(x, as(node, x, f32));
  if (!zero) return x;
  if (element_of(zero) != element) return bad_input("a zero point of another type than its factor");
  INVAR_TRY(zero, as(node, zero, f32));
  return node.make<SubOp>({x, zero});
}

// Channels [start, start + size) of each of `groups` groups.
Result<Value> channels(Node& node, Value x, int64_t groups, int64_t start, int64_t size) {
  if (groups == 1) return part(node, x, 1, start, size);
  Shape shape = shape_of(x.getType()), grouped = shape;
  grouped[1] = Extent::of(shape[1].value / groups);
  grouped.insert(grouped.begin() + 1, Extent::of(groups));
  INVAR_TRY(x, shaped(node, x, grouped));
  INVAR_TRY(x, part(node, x, 2, start, size));
  shape[1] = Extent::of(groups * size);
  return shaped(node, x, shape);
}

// x of operand 0, weights of operand `weights`. A product of two differences has a magnitude of at most 255^2, so 258 of them are
// below 2^24, and f32 has every sum of them.
Result<Value> convolved(Node& node, unsigned weights, Value x, Value x_zero, Value w, Value w_zero) {
  constexpr int64_t kMost = 258;
  const Shape from = node.shape(0), shape = node.shape(weights);
  if (shape.size() != from.size()) return bad_input("operand and weights differ in rank");
  std::vector<int64_t> kernel;
  int64_t taps = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    if (!shape[i].constant() || !from[1].constant())
      return not_covered("channels or a kernel of unknown size");
  for (size_t i = 2; i < shape.size(); ++i) {
    kernel.push_back(shape[i].value);
    if (__builtin_mul_overflow(taps, shape[i].value, &taps) || taps < 1 || taps > kMost)
      return not_covered("a kernel of no or more than 258 taps");
  }
  INVAR_TRY(Window window, window_of(node, kernel));
  INVAR_TRY(AutoPad how, auto_pad(node));
  INVAR_CHECK_OK(resolve_pads(node, how, window));
  INVAR_TRY(const int64_t groups, node.i("group", 1));
  const int64_t all = shape[1].value, step = kMost / taps;
  if (groups < 1 || from[1].value % groups || from[1].value / groups != all)
    return bad_input("channels do not divide into " + std::to_string(groups) + " groups");
  if (w_zero) {
    INVAR_TRY(w_zero, along_channels(node, w_zero, shape.size() + 1));
    if (const Shape each = shape_of(w_zero.getType()); !each.empty() && each[0] != shape[0])
      return bad_input("zero points that are not one for each channel of the result");
  }
  if (x_zero) {
    INVAR_TRY(x_zero, along_channels(node, x_zero, 1));
    if (!shape_of(x_zero.getType()).empty()) return not_covered("more than one zero point of operand 0");
  }
  INVAR_TRY(x, centred(node, x, x_zero));
  INVAR_TRY(w, centred(node, w, w_zero));
  Value total;
  for (int64_t at = 0; at < all || !total; at += step) {
    const int64_t size = std::min(step, all - at);
    INVAR_TRY(Value some, channels(node, x, groups, at, size));
    INVAR_TRY(Value rows, part(node, w, 1, at, size));
    INVAR_TRY(Value sum, node.make<ConvOp>({some, rows}, {node.attr("strides", Sizes(window.strides)),
                                                          node.attr("dilations", Sizes(window.dilations)),
                                                          node.attr("pads", Sizes(window.pads)),
                                                          node.attr("groups", groups)}));
    INVAR_TRY(sum, as(node, sum, node.build().getI32Type()));
    if (total) {
      INVAR_TRY(sum, node.make<AddOp>({total, sum}));
    }
    total = sum;
  }
  return total;
}

}  // namespace
}  // namespace invar::compiler
