// The elementwise room: attributes are written out, older forms become the same operations, several operands a chain.
// RUN: %convert "%s" --split-input-file | %check

// CHECK-LABEL: func.func @attributes
func.func @attributes(%x: tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown {
  // CHECK: repro.leakyrelu %arg0 {alpha = 0.00999999977 : f32, numerics = "ieee", version = 1 : i64}
  %0 = onnx.node "LeakyRelu"(%x) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  // CHECK: repro.hardsigmoid {{.*}} {alpha = 2.500000e-01 : f32, beta = 5.000000e-01 : f32
  %1 = onnx.node "HardSigmoid"(%0) {name = "b", domain = "", version = 23 : i64, params = {alpha = 0.25 : f32}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.shrink {{.*}} {bias = 0.000000e+00 : f32, lambd = 5.000000e-01 : f32
  %2 = onnx.node "Shrink"(%1) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.gelu_tanh {{.*}} {numerics = "graph-1"
  %3 = onnx.node "Gelu"(%2) {name = "d", domain = "", version = 20 : i64, params = {approximate = "tanh"}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.silu
  %4 = onnx.node "Swish"(%3) {name = "e", domain = "", version = 24 : i64, params = {alpha = 1.0 : f32}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.swish {{.*}} {alpha = 1.702
  %5 = onnx.node "QuickGelu"(%4) {name = "f", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.softplus
  %6 = onnx.node "Softplus"(%5) {name = "g", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  return %6 : !onnx.unknown
}

// -----

// Bounds are attributes or operands; those that are known become attributes, the others maximum and minimum.
// CHECK-LABEL: func.func @bounds
func.func @bounds(%x: tensor<?x4xf32, ["seq", ""]>, %high: tensor<f32>) -> !onnx.unknown {
  %none = onnx.absent
  %low = onnx.weight "low" {file = "", offset = 0 : i64, length = 4 : i64, data = "000080bf"} : tensor<f32>
  // CHECK: repro.clip %arg0 {max = 6.000000e+00 : f32, min = 0xFF800000 : f32
  %0 = onnx.node "Clip"(%x) {name = "a", domain = "", version = 6 : i64, params = {max = 6.0 : f32}} : (tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  // CHECK: repro.clip {{.*}} {max = 0x7F800000 : f32, min = -1.000000e+00 : f32
  %1 = onnx.node "Clip"(%0, %low, %none) {name = "b", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<f32>, !onnx.absent) -> !onnx.unknown
  // CHECK: %[[M:.*]] = repro.max {{.*}}, %low
  // CHECK: repro.min %[[M]], %arg1
  %2 = onnx.node "Clip"(%1, %low, %high) {name = "c", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<f32>, tensor<f32>) -> !onnx.unknown
  return %2 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @chains
func.func @chains(%x: tensor<?x4xf32, ["seq", ""]>, %y: tensor<4xf32>, %z: tensor<1xf32>) -> !onnx.unknown {
  // CHECK: %[[A:.*]] = repro.add %arg0, %arg1
  // CHECK: %[[B:.*]] = repro.add %[[A]], %arg2
  // CHECK: repro.weight {{.*}}data = "00004040"
  // CHECK: repro.div %[[B]]
  %0 = onnx.node "Mean"(%x, %y, %z) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>, tensor<4xf32>, tensor<1xf32>) -> !onnx.unknown
  // CHECK: repro.less_equal {{.*}} -> tensor<?x4xi1, ["seq", ""]>
  %1 = onnx.node "LessOrEqual"(%0, %y) {name = "b", domain = "", version = 16 : i64, params = {}} : (!onnx.unknown, tensor<4xf32>) -> !onnx.unknown
  // CHECK: repro.logical_not {{.*}} -> tensor<?x4xi1, ["seq", ""]>
  %2 = onnx.node "Not"(%1) {name = "c", domain = "", version = 1 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.where {{.*}} -> tensor<?x4xf32, ["seq", ""]>
  %3 = onnx.node "Where"(%2, %z, %x) {name = "d", domain = "", version = 16 : i64, params = {}} : (!onnx.unknown, tensor<1xf32>, tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  return %3 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<?xi64, ["seq"]>, %y: tensor<1xi64>) -> !onnx.unknown {
  // CHECK: repro.div %arg0, %arg1 {{.*}} -> tensor<?xi64, ["seq"]>
  %0 = onnx.node "Div"(%x, %y) {name = "a", domain = "", version = 14 : i64, params = {}} : (tensor<?xi64, ["seq"]>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.mod
  %1 = onnx.node "Mod"(%0, %y) {name = "b", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.fmod
  %2 = onnx.node "Mod"(%1, %y) {name = "c", domain = "", version = 13 : i64, params = {fmod = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  return %2 : !onnx.unknown
}
