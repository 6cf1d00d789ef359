// Constant folding of shapes and other small constants. Nodes on narrow floats are widened and rounded once.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<?x6x8xf32, #repro.dims<"batch", "", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<i64>
  %six = onnx.weight "six" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000c040"} : tensor<f32>
  // CHECK: repro.weight "i64 1 0800000000000000"
  %0 = onnx.node "Shape"(%x) {name = "a", domain = "", version = 15 : i64, params = {start = -1 : i64}} : (tensor<?x6x8xf32, #repro.dims<"batch", "", "">>) -> !onnx.unknown
  // CHECK: repro.weight "i64 1 0900000000000000"
  %1 = onnx.node "Add"(%0, %one) {name = "b", domain = "", version = 14 : i64, params = {}} : (!onnx.unknown, tensor<i64>) -> !onnx.unknown
  // The room's reference row, rounding included: sqrt(6).
  // CHECK: repro.weight "f32 71c41c40"
  %2 = onnx.node "Sqrt"(%six) {name = "c", domain = "", version = 13 : i64, params = {}} : (tensor<f32>) -> !onnx.unknown
  return %0, %1, %2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: tensor<?x4xf16, #repro.dims<"seq", "">>, %y: tensor<4xbf16>, %w: tensor<4xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK: %[[X:.*]] = repro.cast %arg0 {{.*}}xf32
  // CHECK: %[[R:.*]] = repro.exp %[[X]]
  // CHECK: repro.cast %[[R]] {{.*}} -> tensor<?x4xf16, #repro.dims<"seq", "">>
  %0 = onnx.node "Exp"(%x) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?x4xf16, #repro.dims<"seq", "">>) -> !onnx.unknown
  // What moves is not rounded.
  // CHECK-NOT: repro.cast
  // CHECK: repro.transpose %arg0 {{.*}}xf16
  %1 = onnx.node "Transpose"(%x) {name = "b", domain = "", version = 13 : i64, params = {}} : (tensor<?x4xf16, #repro.dims<"seq", "">>) -> !onnx.unknown
  // The type is that of the base.
  // CHECK: %[[Y:.*]] = repro.cast %arg1 {{.*}} -> tensor<4xf32>
  // CHECK: repro.pow %arg2, %[[Y]]
  // CHECK-NOT: repro.cast
  // CHECK: return
  %2 = onnx.node "Pow"(%w, %y) {name = "c", domain = "", version = 13 : i64, params = {}} : (tensor<4xf32>, tensor<4xbf16>) -> !onnx.unknown
  return %0, %1, %2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// Means and deviations of a normalization are f32 whatever it normalizes.
// CHECK-LABEL: func.func @statistics
// CHECK-SAME: -> (tensor<2x4xbf16>, tensor<2x1xf32>)
func.func @statistics(%x: tensor<2x4xbf16>, %w: tensor<4xbf16>) -> (!onnx.unknown, !onnx.unknown) {
  %0:2 = onnx.node "LayerNormalization"(%x, %w) {name = "a", domain = "", version = 17 : i64, params = {}} : (tensor<2x4xbf16>, tensor<4xbf16>) -> (!onnx.unknown, !onnx.unknown)
  return %0#0, %0#1 : !onnx.unknown, !onnx.unknown
}
