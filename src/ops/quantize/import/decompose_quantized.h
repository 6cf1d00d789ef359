// Quantization that is decomposed: 16-bit integers (quantize.5); convolutions of 8-bit integers
// (quantize.6).
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

// Zero points in the shape of the scales. A list of one element equals a scalar.
Result<Value> matched_zero_points(NodeView&, Value zeros, Value scales);
// QuantizeLinear to and DequantizeLinear from 16 bits.
Result<Value> quantize_16bit(NodeView&, Type element);
Result<Value> dequantize_16bit(NodeView&);
// TensorProto.DataType of elements that no tensor of a program has (21, 22: 4 bits; 17 to 20:
// float8); 0 for others. What follows takes constants of them (quantize.8).
int32_t packed_code(Value);
Result<Value> integers_of_4_bits(NodeView&, Value);  // as u8 or i8
Result<Value> dequantize_float8(NodeView&);
// The 32-bit convolution of operand 0 with the operand `weights`; zero points and the bias may be
// null.
Result<Value> integer_conv(NodeView&, unsigned weights, Value x_zero, Value w_zero, Value bias);
// The operators of onnxruntime's format QOperator (quantize.7).
void import_quantized_operators(RuleRegistry&);
// GatherBlockQuantized (onnx.34).
Status gather_block_quantized(NodeView&);

}  // namespace invar::compiler
