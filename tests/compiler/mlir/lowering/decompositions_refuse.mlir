// Decomposed nodes: operands that do not fit and features that are not covered.
// RUN: %not %lower "%s" 2>&1 | %check --implicit-check-not error:

// CHECK: error: Einsum (domain ai.onnx opset 12, node "rank"): operand 0 has not as many dimensions as "ij"
// CHECK: error: Einsum (domain ai.onnx opset 12, node "letter"): the result of attribute "equation" has 'q' twice or of no operand
// CHECK: error: Einsum (domain ai.onnx opset 12, node "sign"): attribute "equation" contains '*'
// CHECK: error: Einsum (domain ai.onnx opset 12, node "diagonal"): a diagonal
// CHECK: error: Einsum (domain ai.onnx opset 12, node "sizes"): dimensions 'k': 4 and 3
// CHECK: error: RNN (domain ai.onnx opset 14, node "weights"): weights of [1, 5, 5] and [1, 4, 4] are not those of 1 directions
// CHECK: error: LSTM (domain ai.onnx opset 14, node "gates"): weights of [1, 4, 5] and [1, 4, 4] are not those of 1 directions
// CHECK: error: RNN (domain ai.onnx opset 14, node "clip"): attribute "clip" is 0.000000, not above 0
// CHECK: error: RNN (domain ai.onnx opset 14, node "function"): activation "Elu"; covered are Sigmoid, Tanh and Relu
// CHECK: error: RNN (domain ai.onnx opset 14, node "bias"): operand 3 is not 8 numbers for each direction
// CHECK: error: Compress (domain ai.onnx opset 11, node "long"): a condition longer than the axis
// CHECK: error: LinearAttention (domain ai.onnx opset 27, node "rule"): decay or beta is missing, or there against attribute "update_rule"
// CHECK: error: Dropout (domain ai.onnx opset 13, node "training"): training draws random numbers
func.func @refused(%x: tensor<2x3x4xf32>, %y: tensor<3x4xf32>, %s: tensor<2x3x5xf32>, %w: tensor<1x4x5xf32>, %v: tensor<1x5x5xf32>, %r: tensor<1x4x4xf32>, %b: tensor<1x4xf32>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %absent = onnx.absent
  %true = onnx.weight "true" {file = "", offset = 0 : i64, length = 1 : i64, data = "01"} : tensor<i1>
  %half = onnx.weight "half" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %which = onnx.weight "which" {file = "", offset = 0 : i64, length = 4 : i64, data = "00010001"} : tensor<4xi1>
  %0 = onnx.node "Einsum"(%x) {name = "rank", domain = "", version = 12 : i64, params = {equation = "ij->ij"}} : (tensor<2x3x4xf32>) -> !onnx.unknown
  %1 = onnx.node "Einsum"(%y) {name = "letter", domain = "", version = 12 : i64, params = {equation = "ij->iq"}} : (tensor<3x4xf32>) -> !onnx.unknown
  %2 = onnx.node "Einsum"(%y) {name = "sign", domain = "", version = 12 : i64, params = {equation = "i*->i"}} : (tensor<3x4xf32>) -> !onnx.unknown
  %3 = onnx.node "Einsum"(%y) {name = "diagonal", domain = "", version = 12 : i64, params = {equation = "ii->i"}} : (tensor<3x4xf32>) -> !onnx.unknown
  %4 = onnx.node "Einsum"(%y, %y) {name = "sizes", domain = "", version = 12 : i64, params = {equation = "ik,kj->ij"}} : (tensor<3x4xf32>, tensor<3x4xf32>) -> !onnx.unknown
  %5 = onnx.node "RNN"(%s, %v, %r) {name = "weights", domain = "", version = 14 : i64, params = {}} : (tensor<2x3x5xf32>, tensor<1x5x5xf32>, tensor<1x4x4xf32>) -> !onnx.unknown
  %6 = onnx.node "LSTM"(%s, %w, %r) {name = "gates", domain = "", version = 14 : i64, params = {}} : (tensor<2x3x5xf32>, tensor<1x4x5xf32>, tensor<1x4x4xf32>) -> !onnx.unknown
  %7 = onnx.node "RNN"(%s, %w, %r) {name = "clip", domain = "", version = 14 : i64, params = {clip = 0.0 : f32}} : (tensor<2x3x5xf32>, tensor<1x4x5xf32>, tensor<1x4x4xf32>) -> !onnx.unknown
  %8 = onnx.node "RNN"(%s, %w, %r) {name = "function", domain = "", version = 14 : i64, params = {activations = ["Elu"]}} : (tensor<2x3x5xf32>, tensor<1x4x5xf32>, tensor<1x4x4xf32>) -> !onnx.unknown
  %9 = onnx.node "RNN"(%s, %w, %r, %b) {name = "bias", domain = "", version = 14 : i64, params = {}} : (tensor<2x3x5xf32>, tensor<1x4x5xf32>, tensor<1x4x4xf32>, tensor<1x4xf32>) -> !onnx.unknown
  %10 = onnx.node "Compress"(%y, %which) {name = "long", domain = "", version = 11 : i64, params = {axis = 0 : i64}} : (tensor<3x4xf32>, tensor<4xi1>) -> !onnx.unknown
  %11 = onnx.node "LinearAttention"(%x, %x, %x) {name = "rule", domain = "", version = 27 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> !onnx.unknown
  %12 = onnx.node "Dropout"(%x, %half, %true) {name = "training", domain = "", version = 13 : i64, params = {}} : (tensor<2x3x4xf32>, tensor<f32>, tensor<i1>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}
