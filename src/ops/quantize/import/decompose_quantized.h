// Quantization that is decomposed: 16-bit integers (quantize.5), and exact convolutions of 8-bit
// integers (quantize.6).
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

// Zero points in the shape of the scales. A list of one element equals a scalar.
Result<Value> matched_zero_points(NodeView&, Value zeros, Value scales);
// QuantizeLinear to and DequantizeLinear from 16 bits.
Result<Value> quantize_16bit(NodeView&, Type element);
Result<Value> dequantize_16bit(NodeView&);
// One number, or one per channel, in a shape that broadcasts to a result of this rank.
Result<Value> reshape_to_channels(NodeView&, Value x, size_t rank);
// The 32-bit convolution of operand 0, given as x, with the operand `weights`, given as w; a zero
// point may be null.
Result<Value> integer_conv(NodeView&, unsigned weights, Value x, Value x_zero, Value w, Value w_zero);
// The operators of onnxruntime's format QOperator (quantize.7).
void import_quantized_operators(RuleRegistry&);
// GatherBlockQuantized (onnx.34).
Status gather_block_quantized(NodeView&);

}  // namespace invar::compiler
