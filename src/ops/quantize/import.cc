// Lowering of QuantizeLinear, DequantizeLinear and the quantized products and convolutions, and
// their verification.
#include "ops/quantize/import/decompose_quantized.h"

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// x, scales and zero points, of 4 bits as bytes. drops_zeros: zero points of int32 must be constant
// zeros and are dropped.
Result<SmallVector<Value>> quantization_operands(NodeView& node, bool drops_zeros) {
  if (!element_of(node.in(1)).isF32()) return not_covered("covered are scales of f32");
  const auto unpacked = [&](Value v) -> Result<Value> {
    if (!packed_code(v)) return v;
    return integers_of_4_bits(node, v);
  };
  INVAR_TRY(const Value x, unpacked(node.in(0)));
  SmallVector<Value> in = {x, node.in(1)};
  if (!node.has(2)) return in;
  INVAR_TRY(Value zeros, unpacked(node.in(2)));
  INVAR_TRY(zeros, matched_zero_points(node, zeros, node.in(1)));
  if (!drops_zeros) {
    in.push_back(zeros);
    return in;
  }
  std::optional<std::string> bytes = node.constant_bytes(2);
  if (!bytes || bytes->find_first_not_of('\0') != std::string::npos)
    return not_covered("zero points of int32 that are not zeros in the model file");
  return in;
}
// The attributes axis (opset 13) and block_size (opset 21).
Result<SmallVector<NamedAttribute>> axis_and_block(NodeView& node) {
  INVAR_TRY(int64_t axis, node.int_attr("axis", 1));
  INVAR_TRY(int64_t block, node.int_attr("block_size", 0));
  if (block < 0) return bad_input("attribute \"block_size\" is " + std::to_string(block));
  return SmallVector<NamedAttribute>{node.attr("axis", axis), node.attr("block", block)};
}

// The same for one scale per tensor.
SmallVector<NamedAttribute> per_tensor_attrs(NodeView& node) {
  return {node.attr("axis", int64_t{1}), node.attr("block", int64_t{0})};
}

Result<Value> emit_quantize(NodeView& node, ValueRange in, Type element,
                            llvm::ArrayRef<NamedAttribute> attrs) {
  return node.make<QuantizeLinearOp>(in, attrs, tensor_of(shape_of(in[0].getType()), element));
}

Status quantize_linear(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "block_size", "output_dtype", "precision", "saturate"}));
  INVAR_TRY(int64_t code, node.int_attr("output_dtype", 0));
  INVAR_TRY(int64_t precision, node.int_attr("precision", 0));
  if (precision > 1) return not_covered("attribute \"precision\" is not f32");
  if (!element_of(node.in(0)).isF32()) return not_covered("covered is quantization of f32");
  Type element = node.has(2) ? element_of(node.in(2)) : node.builder().getIntegerType(8, false);
  if (code) element = onnx_type(node.context(), static_cast<int32_t>(code));
  const bool words = element && element.isIntOrIndex() && element.getIntOrFloatBitWidth() == 16;
  if (!element || !(words || element.isSignlessInteger(8) || element.isUnsignedInteger(8)))
    return not_covered("covered are results of 8 and 16 bits");
  if (node.has(2) && element_of(node.in(2)) != element)
    return bad_input("zero points are not of the result's type");
  INVAR_TRY(SmallVector<Value> in, quantization_operands(node, false));
  if (words) {
    INVAR_TRY(Value out, quantize_16bit(node, element));
    return node.replace(out);
  }
  INVAR_TRY(SmallVector<NamedAttribute> attrs, axis_and_block(node));
  INVAR_TRY(Value out, emit_quantize(node, in, element, attrs));
  return node.replace(out);
}

// Whether products alone read the result. A constant is not computed then: the choice integer-1
// looks for its integers.
bool feeds_products(const NodeView& node) {
  return !node.out(0).use_empty() && llvm::all_of(node.out(0).getUsers(), [](Operation* user) {
    auto reader = dyn_cast<NodeOp>(user);
    return reader && reader.getDomain().empty() &&
           (reader.getOpType() == "Conv" || reader.getOpType() == "MatMul" || reader.getOpType() == "Gemm");
  });
}

Status dequantize_linear(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "block_size", "output_dtype"}));
  INVAR_TRY(int64_t code, node.int_attr("output_dtype", 0));  // 0: that of the scales
  if (code > 1) return not_covered("covered are results of f32");
  const auto replaced = [&](Value out) -> Status {
    return node.replace(0, out, /*stays_wide=*/code == 1), Status();
  };
  Type element = element_of(node.in(0));
  const bool wide = element.isSignlessInteger(32);
  if (element.isIntOrIndex() && element.getIntOrFloatBitWidth() == 16) {
    if (!element_of(node.in(1)).isF32()) return not_covered("covered are scales of f32");
    INVAR_TRY(Value out, dequantize_16bit(node));
    return replaced(out);
  }
  const int32_t packed = packed_code(node.in(0));
  if (packed >= 17 && packed <= 20) {
    if (!element_of(node.in(1)).isF32()) return not_covered("covered are scales of f32");
    INVAR_TRY(Value out, dequantize_float8(node));
    return replaced(out);
  }
  if (!wide && packed != 21 && packed != 22 && !element.isSignlessInteger(8) && !element.isUnsignedInteger(8))
    return not_covered("covered are int8, uint8, int16, uint16, int32, and constants of 4 bits and float8");
  INVAR_TRY(SmallVector<Value> in, quantization_operands(node, wide));
  INVAR_TRY(SmallVector<NamedAttribute> attrs, axis_and_block(node));
  const Type type = tensor_of(node.shape(0), node.builder().getF32Type());
  if (feeds_products(node)) {
    INVAR_TRY(Operation * made, make_checked(node.builder(), node.out(0).getLoc(),
                                             DequantizeLinearOp::getOperationName(), in, attrs, type));
    return replaced(made->getResult(0));
  }
  INVAR_TRY(Value out, node.make<DequantizeLinearOp>(in, attrs, type));
  return replaced(out);
}

// An 8-bit tensor with its scale and zero point.
struct QuantizedTensor {
  Value x, scale, zero;
};

// DynamicQuantizeLinear as in ONNX's function. All-zero input gives scale 0 and 0 / 0, and so a
// zero point and results of 0.
Result<QuantizedTensor> dynamic_quantize(NodeView& node, Value x) {
  if (!element_of(x).isF32()) return not_covered("covered is quantization of f32");
  Type u8 = node.builder().getIntegerType(8, false);
  Value zero = node.constant(0.0f), max_code = node.constant(255.0f);
  SmallVector<int64_t> axes;
  for (size_t d = 0; d < shape_of(x.getType()).size(); ++d) axes.push_back(static_cast<int64_t>(d));
  SmallVector<NamedAttribute> all = {node.attr("axes", Ints(axes)), node.attr("keepdims", int64_t{0})};
  INVAR_TRY(Value low, node.make<ReduceMinOp>(x, all));
  INVAR_TRY(Value high, node.make<ReduceMaxOp>(x, all));
  INVAR_TRY(low, node.make<MinOp>({low, zero}));
  INVAR_TRY(high, node.make<MaxOp>({high, zero}));
  INVAR_TRY(Value range, node.make<SubOp>({high, low}));
  INVAR_TRY(Value scale, node.make<DivOp>({range, max_code}));
  INVAR_TRY(Value steps, node.make<DivOp>({low, scale}));
  INVAR_TRY(Value zero_point, node.make<SubOp>({zero, steps}));
  INVAR_TRY(zero_point, node.make<RoundOp>(zero_point));  // the cast limits it to 0 ... 255
  INVAR_TRY(zero_point, node.make<CastOp>(zero_point, {}, tensor_of({}, u8)));
  INVAR_TRY(Value out, emit_quantize(node, {x, scale, zero_point}, u8, per_tensor_attrs(node)));
  return QuantizedTensor{out, scale, zero_point};
}

Status dynamic_quantize_linear(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}, 3));
  INVAR_TRY(QuantizedTensor q, dynamic_quantize(node, node.in(0)));
  node.replace(1, q.scale);
  node.replace(2, q.zero);
  return node.replace(q.x);
}

// A product of 8-bit tensors as f32: the 32-bit sum, dequantized by the product of the scales.
Result<Value> dequantized_matmul(NodeView& node, const QuantizedTensor& a, const QuantizedTensor& b) {
  if (!element_of(a.scale).isF32() || !element_of(b.scale).isF32())
    return not_covered("covered are scales of f32");
  std::optional<DimExpr> one = element_count(shape_of(a.scale.getType()));
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
                                       tensor_of(shape_of(sum.getType()), node.builder().getF32Type()));
}
Value optional_operand(NodeView& node, unsigned i) {
  return node.has(i) ? node.in(i) : Value();
}
// The product plus operand `bias`, if the node has it.
Status lower_biased_matmul(NodeView& node, const QuantizedTensor& a, const QuantizedTensor& b,
                           unsigned bias) {
  INVAR_TRY(Value out, dequantized_matmul(node, a, b));
  if (node.has(bias)) {
    INVAR_TRY(out, node.make<AddOp>({out, node.in(bias)}));
  }
  return node.replace(out);
}

Status qlinear_matmul(NodeView& node) {
  INVAR_CHECK_OK(node.expect(8, 8, {}));
  INVAR_TRY(Value out, dequantized_matmul(node, {node.in(0), node.in(1), node.in(2)},
                                          {node.in(3), node.in(4), node.in(5)}));
  if (node.shape(6).size() > 1 || node.shape(7).size() > 1)
    return not_covered("a scale or zero point of the result for each row");
  INVAR_TRY(const Value zeros, matched_zero_points(node, node.in(7), node.in(6)));
  INVAR_TRY(out, emit_quantize(node, {out, node.in(6), zeros}, element_of(zeros), per_tensor_attrs(node)));
  return node.replace(out);
}
Status matmul_integer_to_float(NodeView& node) {
  INVAR_CHECK_OK(node.expect(4, 7, {}));
  return lower_biased_matmul(node, {node.in(0), node.in(2), optional_operand(node, 4)},
                             {node.in(1), node.in(3), optional_operand(node, 5)}, 6);
}
Status dynamic_quantize_matmul(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 5, {}));
  INVAR_TRY(QuantizedTensor a, dynamic_quantize(node, node.in(0)));
  return lower_biased_matmul(node, a, {node.in(1), node.in(2), optional_operand(node, 3)}, 4);
}

Status conv_integer(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 4, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  INVAR_TRY(Value out, integer_conv(node, 1, optional_operand(node, 2), optional_operand(node, 3), {}));
  return node.replace(out);
}
// The weights have one scale, or one per output channel.
Status qlinear_conv(NodeView& node) {
  INVAR_CHECK_OK(node.expect(8, 9, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  const Shape one, single = {Dim::of(1)};
  for (unsigned i : {1u, 2u, 6u, 7u})
    if (node.shape(i) != one && node.shape(i) != single)
      return not_covered("scales of channels of operand or result");
  for (unsigned i : {1u, 4u, 6u})
    if (!element_of(node.in(i)).isF32()) return not_covered("covered are scales of f32");
  INVAR_TRY(Value sum, integer_conv(node, 3, node.in(2), node.in(5), optional_operand(node, 8)));
  INVAR_TRY(Value scale, node.make<MulOp>({node.in(1), node.in(4)}));
  INVAR_TRY(Value out,
            node.make<DequantizeLinearOp>({sum, scale}, per_tensor_attrs(node),
                                          tensor_of(shape_of(sum.getType()), node.builder().getF32Type())));
  INVAR_TRY(const Value zeros, matched_zero_points(node, node.in(7), node.in(6)));
  INVAR_TRY(out, emit_quantize(node, {out, node.in(6), zeros}, element_of(zeros), per_tensor_attrs(node)));
  return node.replace(out);
}

// Checks the shape of the scales (quantize.2).
LogicalResult verify_scales(Operation* op, Value x, Value scale, Value zeros, Type integers, int64_t axis,
                            int64_t block) {
  Shape shape = shape_of(x.getType()), scales = shape_of(scale.getType());
  if (zeros && (element_of(zeros) != integers || shape_of(zeros.getType()) != scales))
    return op->emitOpError("has zero points of another type or shape than integers and scales");
  if (shape_of(op->getResult(0).getType()) != shape) return op->emitOpError("changes the shape");
  if (!block && (scales.empty() || (scales.size() == 1 && scales[0] == Dim::of(1)))) return success();
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis >= rank) return op->emitOpError("has no axis ") << axis;
  Dim& along = shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  if (block && !along.constant()) return op->emitOpError("cuts an open dimension into blocks");
  if (block) along = Dim::of(along.value / block + (along.value % block != 0));
  if (scales == (block ? shape : Shape{along})) return success();
  return refuse(
      op, "has scales of shape " + text_of(scales) + " instead of " + text_of(block ? shape : Shape{along}));
}

}  // namespace

LogicalResult QuantizeLinearOp::verify() {
  return verify_scales(*this, getX(), getScale(), getZeros(), element_of(getResult()),
                       static_cast<int64_t>(getAxis()), static_cast<int64_t>(getBlock()));
}
LogicalResult DequantizeLinearOp::verify() {
  return verify_scales(*this, getX(), getScale(), getZeros(), element_of(getX()),
                       static_cast<int64_t>(getAxis()), static_cast<int64_t>(getBlock()));
}

void import_quantize(RuleRegistry& registry) {
  registry.add_rule("QuantizeLinear", 10, quantize_linear, "TSZ>*@23");
  registry.add_rule("DequantizeLinear", 10, dequantize_linear, "TST>S");
  registry.add_rule("DynamicQuantizeLinear", 11, dynamic_quantize_linear);
  registry.add_rule("QLinearMatMul", 10, qlinear_matmul);
  registry.add_rule("ConvInteger", 10, conv_integer);
  registry.add_rule("QLinearConv", 10, qlinear_conv);
  registry.add_rule("com.microsoft.QuantizeLinear", 1, quantize_linear, "TSZ>*");
  registry.add_rule("com.microsoft.DequantizeLinear", 1, dequantize_linear, "TST>S");
  import_quantized_operators(registry);
  registry.add_rule("com.microsoft.MatMulIntegerToFloat", 1, matmul_integer_to_float);
  registry.add_rule("com.microsoft.DynamicQuantizeMatMul", 1, dynamic_quantize_matmul);
  registry.add_rule("com.microsoft.GatherBlockQuantized", 1, gather_block_quantized);
  registry.add_rule("com.microsoft.MatMulNBits", 1, matmul_nbits);
  registry.add_rule("com.microsoft.MoE", 1, mixture_of_experts);
  registry.add_rule("com.microsoft.QMoE", 1, quantized_mixture_of_experts, "TTWSTWSTWSTWWWT>T");
}

}  // namespace invar::compiler
