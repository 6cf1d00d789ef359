// Helpers that emit repro operations, for rules that lower one node to several: reshape, transpose,
// slice, matmul, ...
#pragma once
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

// Reshapes x, unless it has the shape.
Result<Value> reshape(NodeView& node, Value x, const Shape& shape);
// Converts x to an element type, unless it has it.
Result<Value> cast_to(NodeView& node, Value x, Type element);
// The shape [product of dimensions before the axis, product from the axis on]; the axis may be the
// rank.
Result<Shape> flatten_to_matrix(const Shape& shape, int64_t axis);
// Lowers Softmax, LogSoftmax and Hardmax. Before opset 13 they flatten the dimensions from their
// axis on (default 1).
Status lower_softmax_like(NodeView& node, llvm::function_ref<Result<Value>(Value x, int64_t axis)> rule);
Result<Value> transpose(NodeView& node, Value x, Ints perm);
// Matches x [B, H, N, D] = transpose(reshape(y)) of y [B, N, H * D] and returns y; null if it does
// not match.
Value match_heads_last(Value x);
// A dimension expression as i64 []. If it may be negative it also becomes a dimension, so that a
// call where it is negative fails.
Result<Value> nonnegative_size_tensor(NodeView& node, const DimExpr& number);
// Broadcasts x to a shape, unless it has it.
Result<Value> expand(NodeView& node, Value x, const Shape& shape);
// Elements [start, start + size) along an axis.
Result<Value> slice(NodeView& node, Value x, size_t axis, int64_t start, const Dim& size);
Result<Value> slice(NodeView& node, Value x, size_t axis, int64_t start, int64_t size);
Result<Value> concat(NodeView& node, ValueRange parts, int64_t axis);
// a x b, or a x transpose(b).
Result<Value> matrix_product(NodeView& node, Value a, Value b, bool transposed = false);
// An f64 scalar.
Value f64_constant(NodeView& node, double value);
// Softmax or log-softmax of f64, decomposed (onnx.18).
Result<Value> softmax_f64(NodeView& node, Value x, int64_t axis, bool logarithm);

// The constant 0, 1, ... n - 1 in this shape.
Result<Value> iota_constant(NodeView& node, int64_t n, const Shape& shape);

// The only element of a constant integer operand, or `absent` if there is no operand.
Result<int64_t> constant_int(const NodeView& node, unsigned operand, int64_t absent);

// The index of a string attribute's value among `names`, which blanks separate.
Result<int64_t> enum_attr(NodeView& node, const char* name, llvm::StringRef names, llvm::StringRef standard);

}  // namespace invar::compiler
