#include "ops/quantize/import/integers.h"

namespace invar::compiler {
namespace {

// Scales as they are, or of one element for all; zero points of zeros where integers of 32 bits have them are dropped.
Result<SmallVector<Value>> scaled(Node& node, bool drops_zeros) {
  if (!element_of(node.in(1)).isF32()) return not_covered("covered are scales of f32");
  SmallVector<Value> in = {node.in(0), node.in(1)};
  if (!node.has(2)) return in;
  INVAR_TRY(const Value zeros, zero_points(node, node.in(2), node.in(1)));
  if (!drops_zeros) {
    in.push_back(zeros);
    return in;
  }
  std::optional<std::string> bytes = node.bytes(2);
  if (!bytes || bytes->find_first_not_of('\0') != std::string::npos)
    return not_covered("zero points of int32 that are not zeros in the model file");
  return in;
}
// axis and block of opset 13 and 21.
Result<SmallVector<NamedAttribute>> places(Node& node) {
  INVAR_TRY(int64_t axis, node.i("axis", 1));
  INVAR_TRY(int64_t block, node.i("block_size", 0));
  if (block < 0) return bad_input("attribute \"block_size\" is " + std::to_string(block));
  return SmallVector<NamedAttribute>{node.attr("axis", axis), node.attr("block", block)};
}

// The same where one scale is for all.
SmallVector<NamedAttribute> whole(Node& node) {
  return {node.attr("axis", int64_t{1}), node.attr("block", int64_t{0})};
}

Result<Value> quantized(Node& node, ValueRange in, Type element, llvm::ArrayRef<NamedAttribute> attrs) {
  return node.make<QuantizeLinearOp>(in, attrs, tensor_of(shape_of(in[0].getType()), element));
}

Status quantize_linear(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "block_size", "output_dtype", "precision", "saturate"}));
  INVAR_TRY(int64_t code, node.i("output_dtype", 0));
  INVAR_TRY(int64_t precision, node.i("precision", 0));
  if (precision > 1) return not_covered("attribute \"precision\" is not f32");
  if (!element_of(node.in(0)).isF32()) return not_covered("covered is quantization of f32");
  Type element = node.has(2) ? element_of(node.in(2)) : node.build().getIntegerType(8, false);
  if (code) element = onnx_type(node.context(), static_cast<int32_t>(code));
  const bool words = element && element.isIntOrIndex() && element.getIntOrFloatBitWidth() == 16;
  if (!element || !(words || element.isSignlessInteger(8) || element.isUnsignedInteger(8)))
    return not_covered("covered are results of 8 and 16 bits");
  if (node.has(2) && element_of(node.in(2)) != element)
    return bad_input("zero points are not of the result's type");
  INVAR_TRY(SmallVector<Value> in, scaled(node, false));
  if (words) {
    INVAR_TRY(Value out, quantized_words(node, element));
    return node.replace(out);
  }
  INVAR_TRY(SmallVector<NamedAttribute> attrs, places(node));
  INVAR_TRY(Value out, quantized(node, in, element, attrs));
  return node.replace(out);
}

Status dequantize_linear(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "block_size", "output_dtype"}));
  INVAR_TRY(int64_t code, node.i("output_dtype", 0));  // absent: that of the scales
  if (code > 1) return not_covered("covered are results of f32");
  const auto replaced = [&](Value out) -> Status {
    return node.replace(0, out, /*stays_wide=*/code == 1), Status();
  };
  Type element = element_of(node.in(0));
  const bool wide = element.isSignlessInteger(32);
  if (element.isIntOrIndex() && element.getIntOrFloatBitWidth() == 16) {
    if (!element_of(node.in(1)).isF32()) return not_covered("covered are scales of f32");
    INVAR_TRY(Value out, dequantized_words(node));
    return replaced(out);
  }
  if (!wide && !element.isSignlessInteger(8) && !element.isUnsignedInteger(8))
    return not_covered("covered are int8, uint8, int16, uint16 and int32");
  INVAR_TRY(SmallVector<Value> in, scaled(node, wide));
  INVAR_TRY(SmallVector<NamedAttribute> attrs, places(node));
  INVAR_TRY(Value out,
            node.make<DequantizeLinearOp>(in, attrs, tensor_of(node.shape(0), node.build().getF32Type())));
  return replaced(out);
}

// A tensor of bytes with its scale and zero point.
struct Quantised {
  Value x, scale, zero;
};

// As ONNX gives it as a function, step by step. All zeros: a scale of 0, 0 / 0, and so zero points and results of 0.
Result<Quantised> dynamically(Node& node, Value x) {
  if (!element_of(x).isF32()) return not_covered("covered is quantization of f32");
  Type u8 = node.build().getIntegerType(8, false);
  Value zero = node.constant(0.0f), most = node.constant(255.0f);
  SmallVector<int64_t> axes;
  for (size_t d = 0; d < shape_of(x.getType()).size(); ++d) axes.push_back(static_cast<int64_t>(d));
  SmallVector<NamedAttribute> all = {node.attr("axes", llvm::ArrayRef<int64_t>(axes)),
                                     node.attr("keepdims", int64_t{0})};
  INVAR_TRY(Value low, node.make<ReduceMinOp>(x, all));
  INVAR_TRY(Value high, node.make<ReduceMaxOp>(x, all));
  INVAR_TRY(low, node.make<MinOp>({low, zero}));
  INVAR_TRY(high, node.make<MaxOp>({high, zero}));
  INVAR_TRY(Value range, node.make<SubOp>({high, low}));
  INVAR_TRY(Value scale, node.make<DivOp>({range, most}));
  INVAR_TRY(Value steps, node.make<DivOp>({low, scale}));
  INVAR_TRY(Value place, node.make<SubOp>({zero, steps}));
  INVAR_TRY(place, node.make<RoundOp>(place));  // the cast limits it to 0 ... 255
  INVAR_TRY(place, node.make<CastOp>(place, {}, tensor_of({}, u8)));
  INVAR_TRY(Value out, quantized(node, {x, scale, place}, u8, whole(node)));
  return Quantised{out, scale, place};
}

Status dynamic_quantize_linear(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}, 3));
  INVAR_TRY(Quantised q, dynamically(node, node.in(0)));
  node.replace(1, q.scale);
  node.replace(2, q.zero);
  return node.replace(q.x);
}

// The product of bytes as f32: the sum of 32 bits, dequantised by the product of the scales.
Result<Value> product(Node& node, const Quantised& a, const Quantised& b) {
  if (!element_of(a.scale).isF32() || !element_of(b.scale).isF32())
    return not_covered("covered are scales of f32");
  std::optional<Polynomial> one = count_of(shape_of(a.scale.getType()));
  if (!one || *one != 1) return not_covered("more than one scale of the first factor");
  SmallVector<Value> in = {a.x, b.x};
  if (a.zero || b.zero) {
    Value zero = a.zero ? a.zero : node.constant(llvm::StringRef("\0", 1), *dtype_of(element_of(a.x)));
    in.push_back(zero);
  }
  if (b.zero) in.push_back(b.zero);
  INVAR_TRY(Value sum, node.make<MatmulIntegerOp>(in));
  INVAR_TRY(Value scale, node.make<MulOp>({a.scale, b.scale}));
  SmallVector<NamedAttribute> columns = {node.attr("axis", int64_t{-1}), node.attr("block", int64_t{0})};
  return node.make<DequantizeLinearOp>({sum, scale}, columns,
                                       tensor_of(shape_of(sum.getType()), node.build().getF32Type()));
}
Value given(Node& node, unsigned i) {
  return node.has(i) ? node.in(i) : Value();
}
// The product plus operand `bias`, where it is there.
Status biased(Node& node, const Quantised& a, const Quantised& b, unsigned bias) {
  INVAR_TRY(Value out, product(node, a, b));
  if (node.has(bias)) {
    INVAR_TRY(out, node.make<AddOp>({out, node.in(bias)}));
  }
  return node.replace(out);
}

Status qlinear_matmul(Node& node) {
  INVAR_CHECK_OK(node.expect(8, 8, {}));
  INVAR_TRY(Value out,
            product(node, {node.in(0), node.in(1), node.in(2)}, {node.in(3), node.in(4), node.in(5)}));
  if (node.shape(6).size() > 1 || node.shape(7).size() > 1)
    return not_covered("a scale or zero point of the result for each row");
  INVAR_TRY(const Value zeros, zero_points(node, node.in(7), node.in(6)));
  INVAR_TRY(out, quantized(node, {out, node.in(6), zeros}, element_of(zeros), whole(node)));
  return node.replace(out);
}
Status matmul_integer_to_float(Node& node) {
  INVAR_CHECK_OK(node.expect(4, 7, {}));
  return biased(node, {node.in(0), node.in(2), given(node, 4)}, {node.in(1), node.in(3), given(node, 5)}, 6);
}
Status dynamic_quantize_matmul(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 5, {}));
  INVAR_TRY(Quantised a, dynamically(node, node.in(0)));
  return biased(node, a, {node.in(1), node.in(2), given(node, 3)}, 4);
}

Status conv_integer(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 4, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  INVAR_TRY(Value out, convolved(node, 1, node.in(0), given(node, 2), node.in(1), given(node, 3)));
  return node.replace(out);
}
// A scale of the weights for all channels of the result, or for each.
Status qlinear_conv(Node& node) {
  INVAR_CHECK_OK(node.expect(8, 9, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  const Shape one, single = {Extent::of(1)};
  for (unsigned i : {1u, 2u, 6u, 7u})
    if (node.shape(i) != one && node.shape(i) != single)
      return not_covered("scales of channels of operand or result");
  for (unsigned i : {1u, 4u, 6u})
    if (!element_of(node.in(i)).isF32()) return not_covered("covered are scales of f32");
  INVAR_TRY(Value sum, convolved(node, 3, node.in(0), node.in(2), node.in(3), node.in(5)));
  if (node.has(8)) {
    INVAR_TRY(Value bias, along_channels(node, node.in(8), shape_of(sum.getType()).size()));
    INVAR_TRY(sum, node.make<AddOp>({sum, bias}));
  }
  INVAR_TRY(Value scale, node.make<MulOp>({node.in(1), node.in(4)}));
  INVAR_TRY(Value out,
            node.make<DequantizeLinearOp>({sum, scale}, whole(node),
                                          tensor_of(shape_of(sum.getType()), node.build().getF32Type())));
  INVAR_TRY(const Value zeros, zero_points(node, node.in(7), node.in(6)));
  INVAR_TRY(out, quantized(node, {out, node.in(6), zeros}, element_of(zeros), whole(node)));
  return node.replace(out);
}

// The scales' shape as quantize.2 has it.
LogicalResult fits(Operation* op, Value x, Value scale, Value zeros, Type integers, int64_t axis,
                   int64_t block) {
  Shape shape = shape_of(x.getType()), scales = shape_of(scale.getType());
  if (zeros && (element_of(zeros) != integers || shape_of(zeros.getType()) != scales))
    return op->emitOpError("has zero points of another type or shape than integers and scales");
  if (shape_of(op->getResult(0).getType()) != shape) return op->emitOpError("changes the shape");
  if (!block && (scales.empty() || (scales.size() == 1 && scales[0] == Extent::of(1)))) return success();
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis >= rank) return op->emitOpError("has no axis ") << axis;
  Extent& along = shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  if (block && !along.constant()) return op->emitOpError("cuts an open dimension into blocks");
  if (block) along = Extent::of(along.value / block + (along.value % block != 0));
  if (scales == (block ? shape : Shape{along})) return success();
  return op->emitOpError("has scales of shape " + text_of(scales) + " instead of " +
                         text_of(block ? shape : Shape{along}));
}

}  // namespace

LogicalResult QuantizeLinearOp::verify() {
  return fits(*this, getX(), getScale(), getZeros(), element_of(getResult()), static_cast<int64_t>(getAxis()),
              static_cast<int64_t>(getBlock()));
}
LogicalResult DequantizeLinearOp::verify() {
  return fits(*this, getX(), getScale(), getZeros(), element_of(getX()), static_cast<int64_t>(getAxis()),
              static_cast<int64_t>(getBlock()));
}

void import_quantize(Rooms& rooms) {
  rooms.on("QuantizeLinear", 10, quantize_linear, "TSZ>*@23");
  rooms.on("DequantizeLinear", 10, dequantize_linear, "TST>S");
  rooms.on("DynamicQuantizeLinear", 11, dynamic_quantize_linear);
  rooms.on("QLinearMatMul", 10, qlinear_matmul);
  rooms.on("ConvInteger", 10, conv_integer);
  rooms.on("QLinearConv", 10, qlinear_conv);
  rooms.on("com.microsoft.MatMulIntegerToFloat", 1, matmul_integer_to_float);
  rooms.on("com.microsoft.DynamicQuantizeMatMul", 1, dynamic_quantize_matmul);
}

}  // namespace invar::compiler
