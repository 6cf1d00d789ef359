// The operators of onnxruntime's format QOperator (com.microsoft): on 8-bit tensors with scales and
// zero points, DequantizeLinear, the operator on floats and QuantizeLinear (quantize.7). Products
// are exact and then rounded, as those of QLinearConv.
#include "compiler/room_api.h"
#include "ops/quantize/import/decompose_quantized.h"

namespace invar::compiler {
namespace {

using Values = SmallVector<Value>;
constexpr int64_t kQuantizeOpset = 13;

Value dequantized(NodeExpansion& node, unsigned x) {
  return node.node("DequantizeLinear", kQuantizeOpset,
                   {node.in(x), node.in_or_absent(x + 1), node.in_or_absent(x + 2)});
}
Values quantized(NodeExpansion& node, Value y, unsigned scale) {
  return {node.node("QuantizeLinear", kQuantizeOpset, {y, node.in(scale), node.in_or_absent(scale + 1)})};
}

// (A, scale, zero, B, scale, zero, scale, zero of the result)
Result<Values> add_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(7, 8, {}));
  return quantized(node, node.node("Add", 14, {dequantized(node, 0), dequantized(node, 3)}), 6);
}
Result<Values> mul_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(7, 8, {}));
  return quantized(node, node.node("Mul", 14, {dequantized(node, 0), dequantized(node, 3)}), 6);
}
// (condition, X, scale, zero, Y, scale, zero, scale, zero of the result)
Result<Values> where_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(8, 9, {}));
  return quantized(node, node.node("Where", 16, {node.in(0), dequantized(node, 1), dequantized(node, 4)}), 7);
}
// (scale, zero of the result; X, scale, zero; ...)
Result<Values> concat_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(5, static_cast<unsigned>(node.operands()), {"axis"}));
  if (node.operands() % 3 != 2) return bad_input("an operand has no scale or no zero point");
  Values parts;
  for (unsigned i = 2; i < node.operands(); i += 3) parts.push_back(dequantized(node, i));
  return quantized(node, node.node("Concat", 13, parts, node.attributes()), 0);
}

// (X, scale, zero, scale, zero of the result): LeakyRelu, Sigmoid
Result<Values> leaky_relu_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(4, 5, {"alpha"}));
  return quantized(node, node.node("LeakyRelu", 16, dequantized(node, 0), node.attributes()), 3);
}
Result<Values> sigmoid_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(4, 5, {}));
  return quantized(node, node.node("Sigmoid", 13, dequantized(node, 0)), 3);
}
Result<Values> reduce_mean_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(4, 5, {"axes", "keepdims"}));
  return quantized(node, node.node("ReduceMean", 13, dequantized(node, 0), node.attributes()), 3);
}
// The attribute opset says which Softmax it is: before 13 one over all dimensions from `axis` on.
Result<Values> softmax_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(4, 5, {"axis", "opset"}));
  const int64_t opset = node.int_attr("opset", 13);
  if (opset < 1) return bad_input("attribute \"opset\" is " + std::to_string(opset));
  return quantized(
      node, node.node("Softmax", opset < 13 ? 11 : 13, dequantized(node, 0), node.attributes({"opset"})), 3);
}

// The pool of a tensor with channels first, or last with channels_last = 1.
Result<Values> pool_quantized(NodeExpansion& node, llvm::StringRef op_type, int64_t opset) {
  const bool last = node.int_attr("channels_last", 0) != 0;
  Value x = dequantized(node, 0);
  const std::optional<int64_t> rank = NodeExpansion::rank_of(node.in(0));
  if (last && (!rank || *rank < 3)) return not_covered("channels last of an operand of unknown rank");
  std::vector<int64_t> to_first, to_last;
  for (int64_t d = 0; last && d < *rank; ++d) {
    to_first.push_back(d == 0 ? 0 : d == 1 ? *rank - 1 : d - 1);
    to_last.push_back(d == 0 ? 0 : d == *rank - 1 ? 1 : d + 1);
  }
  if (last) x = node.node("Transpose", 13, x, node.attr("perm", Ints(to_first)));
  Value y = node.node(op_type, opset, x, node.attributes({"channels_last"}));
  if (last) y = node.node("Transpose", 13, y, node.attr("perm", Ints(to_last)));
  return quantized(node, y, 3);
}
Result<Values> average_pool_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(
      4, 5,
      {"auto_pad", "ceil_mode", "channels_last", "count_include_pad", "kernel_shape", "pads", "strides"}));
  return pool_quantized(node, "AveragePool", 11);
}
Result<Values> global_average_pool_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(4, 5, {"channels_last"}));
  return pool_quantized(node, "GlobalAveragePool", 1);
}

// (A, scale, zero, B, scale, zero, C of int32, scale, zero of the result): the exact sum with C,
// times alpha and both scales; of floats without a scale of the result.
Result<Values> gemm_quantized(NodeExpansion& node) {
  INVAR_CHECK_OK(node.expect(6, 9, {"alpha", "transA", "transB"}));
  const auto factor = [&](unsigned x, llvm::StringRef transposed) {
    return node.int_attr(transposed, 0)
               ? node.node("Transpose", 13, node.in(x), node.attr("perm", Ints({1, 0})))
               : node.in(x);
  };
  Value sum =
      node.node("MatMulInteger", 10, {factor(0, "transA"), factor(3, "transB"), node.in(2), node.in(5)});
  if (node.has(6)) sum = node.node("Add", 14, {sum, node.in(6)});
  Value scale = node.in(1);
  if (const float alpha = node.float_attr("alpha", 1.0f); alpha != 1.0f)
    scale = node.node("Mul", 14, {scale, node.constant(alpha)});
  scale = node.node("Mul", 14, {scale, node.in(4)});
  const Value y = node.node("DequantizeLinear", kQuantizeOpset, {sum, scale}, node.attr("axis", int64_t{1}));
  if (!node.has(7)) return Values{y};
  return quantized(node, y, 7);
}

// LSTM of X and weights [directions, input, 4 hidden] of 8 bits, dequantized by one scale a
// direction or one a column: operands 8 to 11.
Result<Values> lstm_of_quantized_weights(NodeExpansion& node) {
  for (const unsigned i : {0, 1, 2, 8, 9, 10, 11})  // the rule of LSTM asks for the rest
    if (!node.has(i)) return bad_input("operand " + std::to_string(i) + " is missing");
  const auto weights = [&](unsigned w, unsigned scale) -> Result<Value> {
    const auto row = [&](unsigned i) -> Result<Value> {
      const std::optional<int64_t> rank = NodeExpansion::rank_of(node.in(i));
      if (!rank || *rank < 1 || *rank > 2) return not_covered("scales of another rank than 1 and 2");
      const Value axes = *rank == 1 ? node.constant(Ints({1, 2})) : node.constant(Ints({1}));
      return node.node("Unsqueeze", 13, {node.in(i), axes});
    };
    const NamedAttribute to_float = node.attr("to", int64_t{1});
    INVAR_TRY(const Value zero, row(scale + 1));
    INVAR_TRY(const Value each, row(scale));
    Value x = node.node("Cast", 13, node.in(w), to_float);
    x = node.node("Sub", 14, {x, node.node("Cast", 13, zero, to_float)});
    x = node.node("Mul", 14, {x, each});
    return node.node("Transpose", 13, x, node.attr("perm", Ints({0, 2, 1})));
  };
  INVAR_TRY(const Value w, weights(1, 8));
  INVAR_TRY(const Value r, weights(2, 10));
  return node.nodes("LSTM", 14,
                    {node.in(0), w, r, node.in(3), node.in(4), node.in(5), node.in(6), node.in(7)},
                    node.attributes(), 3);
}

}  // namespace

void import_quantized_operators(RuleRegistry& registry) {
  registry.add_expansion("com.microsoft.QLinearAdd", add_quantized);
  registry.add_expansion("com.microsoft.QLinearMul", mul_quantized);
  registry.add_expansion("com.microsoft.QLinearWhere", where_quantized);
  registry.add_expansion("com.microsoft.QLinearConcat", concat_quantized);
  registry.add_expansion("com.microsoft.QLinearLeakyRelu", leaky_relu_quantized);
  registry.add_expansion("com.microsoft.QLinearSigmoid", sigmoid_quantized);
  registry.add_expansion("com.microsoft.QLinearReduceMean", reduce_mean_quantized);
  registry.add_expansion("com.microsoft.QLinearSoftmax", softmax_quantized);
  registry.add_expansion("com.microsoft.QLinearAveragePool", average_pool_quantized);
  registry.add_expansion("com.microsoft.QLinearGlobalAveragePool", global_average_pool_quantized);
  registry.add_expansion("com.microsoft.QGemm", gemm_quantized);
  registry.add_expansion("com.microsoft.DynamicQuantizeLSTM", lstm_of_quantized_weights);
}

}  // namespace invar::compiler
