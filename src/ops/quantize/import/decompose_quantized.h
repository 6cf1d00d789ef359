// Quantization that is decomposed: 16-bit integers (quantize.5); convolutions of 8-bit integers
// (quantize.6); operators of com.microsoft whose weights are packed in blocks.
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
// An operand in another shape of the same elements; a constant stays one.
Result<Value> reshaped_constant(NodeView&, unsigned operand, const Shape&);
// The bytes that hold a constant.
Result<Value> constant_bytes(NodeView&, Value, const Shape&);
// Integers of 2, 4 or 8 bits in the bytes of the last dimension, the lowest bits first, as u8.
Result<Value> unpacked_integers(NodeView&, Value bytes, int64_t bits);
// The number of blocks in n.
inline int64_t block_count(int64_t n, int64_t block) {
  return n / block + (n % block != 0);
}
// A matrix of integers of 2, 4 or 8 bits, a row for each column of a product: [N, groups, bytes] or
// [N, bytes], scales [N, groups] or [N], and zero points [N, bytes] or null, which is the middle.
struct PackedMatrix {
  Value integers = {}, scales = {}, zeros = {};
  int64_t bits = 8, block = 0;  // block 0: a row has one scale
};
Result<Value> packed_product(NodeView&, Value a, PackedMatrix);
// GatherBlockQuantized (onnx.34), MatMulNBits (onnx.42), MoE and QMoE (onnx.43).
Status gather_block_quantized(NodeView&);
Status matmul_nbits(NodeView&);
Status mixture_of_experts(NodeView&);
Status quantized_mixture_of_experts(NodeView&);

}  // namespace invar::compiler
