// Nodes that are decomposed into several operations.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @contractions
func.func @contractions(%a: tensor<2x3x4xf32>, %b: tensor<4x2x5xf32>, %v: tensor<4xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // Letters of both that the result has stand in front, those it has not are the inner dimension.
  // CHECK: %[[T:.*]] = repro.transpose %arg1 {{.*}}perm = array<i64: 1, 2, 0>
  // CHECK: %[[P:.*]] = repro.matmul %arg0, %[[T]] {{.*}}trans_b = 1 : i64{{.*}} -> tensor<2x3x5xf32>
  // CHECK: repro.transpose %[[P]] {{.*}}perm = array<i64: 2, 0, 1>
  %0 = onnx.node "Einsum"(%a, %b) {name = "a", domain = "", version = 12 : i64, params = {equation = "bik, kbj -> jbi"}} : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) -> !onnx.unknown
  // CHECK: repro.reduce_sum %arg0 {axes = array<i64: 0, 2>, keepdims = 0 : i64
  %1 = onnx.node "Einsum"(%a) {name = "b", domain = "", version = 12 : i64, params = {equation = "xyz->y"}} : (tensor<2x3x4xf32>) -> !onnx.unknown
  // A vector is a column that the result does not have.
  // CHECK: repro.matmul {{.*}} -> tensor<2x3x1xf32>
  // CHECK: repro.reshape {{.*}} -> tensor<2x3xf32>
  %2 = onnx.node "MatMul"(%a, %v) {name = "c", domain = "", version = 13 : i64, params = {}} : (tensor<2x3x4xf32>, tensor<4xf32>) -> !onnx.unknown
  return %0, %1, %2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// Two steps of a network: the second reads what the first made.
// CHECK-LABEL: func.func @steps
func.func @steps(%x: tensor<2x3x5xf32>, %w: tensor<1x4x5xf32>, %r: tensor<1x4x4xf32>) -> !onnx.unknown {
  // CHECK-COUNT-2: repro.tanh
  // CHECK-NOT: repro.tanh
  // CHECK: repro.concat {{.*}} -> tensor<2x1x3x4xf32>
  %0 = onnx.node "RNN"(%x, %w, %r) {name = "a", domain = "", version = 14 : i64, params = {hidden_size = 4 : i64}} : (tensor<2x3x5xf32>, tensor<1x4x5xf32>, tensor<1x4x4xf32>) -> !onnx.unknown
  return %0 : !onnx.unknown
}
