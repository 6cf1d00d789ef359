// Elementwise nodes: explicit attributes, legacy forms, and chains for variadic nodes.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @attributes
func.func @attributes(%x: tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown {
  // CHECK: repro.leakyrelu %arg0 {alpha = 0.00999999977 : f32, numerics = "ieee", version = 1 : i64}
  %0 = onnx.node "LeakyRelu"(%x) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
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
func.func @bounds(%x: tensor<?x4xf32, #repro.dims<"seq", "">>, %high: tensor<f32>) -> !onnx.unknown {
  %none = onnx.absent
  %low = onnx.weight "low" {file = "", offset = 0 : i64, length = 4 : i64, data = "000080bf"} : tensor<f32>
  // CHECK: repro.clip %arg0 {max = 6.000000e+00 : f32, min = -3.40282347E+38 : f32
  %0 = onnx.node "Clip"(%x) {name = "a", domain = "", version = 6 : i64, params = {max = 6.0 : f32}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  // CHECK: repro.clip {{.*}} {max = 0x7F800000 : f32, min = -1.000000e+00 : f32
  %1 = onnx.node "Clip"(%0, %low, %none) {name = "b", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<f32>, !onnx.absent) -> !onnx.unknown
  // CHECK: %[[M:.*]] = repro.max {{.*}}, %low
  // CHECK: repro.min %[[M]], %arg1
  %2 = onnx.node "Clip"(%1, %low, %high) {name = "c", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<f32>, tensor<f32>) -> !onnx.unknown
  return %2 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @chains
func.func @chains(%x: tensor<?x4xf32, #repro.dims<"seq", "">>, %y: tensor<4xf32>, %z: tensor<1xf32>) -> !onnx.unknown {
  // CHECK: %[[A:.*]] = repro.add %arg0, %arg1
  // CHECK: %[[B:.*]] = repro.add %[[A]], %arg2
  // CHECK: repro.weight {{.*}}data = "00004040"
  // CHECK: repro.div %[[B]]
  %0 = onnx.node "Mean"(%x, %y, %z) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<4xf32>, tensor<1xf32>) -> !onnx.unknown
  // CHECK: repro.less_equal {{.*}} -> tensor<?x4xi1, #repro.dims<"seq", "">>
  %1 = onnx.node "LessOrEqual"(%0, %y) {name = "b", domain = "", version = 16 : i64, params = {}} : (!onnx.unknown, tensor<4xf32>) -> !onnx.unknown
  // CHECK: repro.logical_not {{.*}} -> tensor<?x4xi1, #repro.dims<"seq", "">>
  %2 = onnx.node "Not"(%1) {name = "c", domain = "", version = 1 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.where {{.*}} -> tensor<?x4xf32, #repro.dims<"seq", "">>
  %3 = onnx.node "Where"(%2, %z, %x) {name = "d", domain = "", version = 16 : i64, params = {}} : (!onnx.unknown, tensor<1xf32>, tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %3 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<?xi64, #repro.dims<"seq">>, %y: tensor<1xi64>) -> !onnx.unknown {
  // CHECK: repro.div %arg0, %arg1 {{.*}} -> tensor<?xi64, #repro.dims<"seq">>
  %0 = onnx.node "Div"(%x, %y) {name = "a", domain = "", version = 14 : i64, params = {}} : (tensor<?xi64, #repro.dims<"seq">>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.mod
  %1 = onnx.node "Mod"(%0, %y) {name = "b", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.fmod
  %2 = onnx.node "Mod"(%1, %y) {name = "c", domain = "", version = 13 : i64, params = {fmod = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  return %2 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @functions
func.func @functions(%x: tensor<?x4xf32, #repro.dims<"seq", "">>, %b: tensor<4xf32>) -> !onnx.unknown {
  // CHECK: repro.tan {{.*}}numerics = "correctly-rounded"
  %0 = onnx.node "Tan"(%x) {name = "n0", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  // CHECK: repro.asin {{.*}}numerics = "correctly-rounded"
  %1 = onnx.node "Asin"(%0) {name = "n1", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.acos {{.*}}numerics = "correctly-rounded"
  %2 = onnx.node "Acos"(%1) {name = "n2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.atan {{.*}}numerics = "correctly-rounded"
  %3 = onnx.node "Atan"(%2) {name = "n3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.sinh {{.*}}numerics = "correctly-rounded"
  %4 = onnx.node "Sinh"(%3) {name = "n4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.cosh {{.*}}numerics = "correctly-rounded"
  %5 = onnx.node "Cosh"(%4) {name = "n5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.tanh {{.*}}numerics = "correctly-rounded"
  %6 = onnx.node "Tanh"(%5) {name = "n6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.asinh {{.*}}numerics = "correctly-rounded"
  %7 = onnx.node "Asinh"(%6) {name = "n7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.acosh {{.*}}numerics = "correctly-rounded"
  %8 = onnx.node "Acosh"(%7) {name = "n8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.atanh {{.*}}numerics = "correctly-rounded"
  %9 = onnx.node "Atanh"(%8) {name = "n9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.erf {{.*}}numerics = "correctly-rounded"
  %10 = onnx.node "Erf"(%9) {name = "n10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.elu {{.*}}alpha = 1.000000e+00 : f32
  %11 = onnx.node "Elu"(%10) {name = "n11", domain = "", version = 22 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.selu {{.*}}alpha = 1.67326319 : f32, gamma = 1.05070102 : f32
  %12 = onnx.node "Selu"(%11) {name = "n12", domain = "", version = 22 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.celu {{.*}}alpha = 2.500000e-01 : f32
  %13 = onnx.node "Celu"(%12) {name = "n13", domain = "", version = 12 : i64, params = {alpha = 0.25 : f32}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.gelu %
  %14 = onnx.node "Gelu"(%13) {name = "n14", domain = "", version = 20 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.gelu %
  %15 = onnx.node "Gelu"(%14) {name = "n15", domain = "", version = 20 : i64, params = {approximate = "none"}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.gelu %
  %16 = onnx.node "Gelu"(%15) {name = "n16", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.add {{.*}}, %arg1
  // CHECK: repro.gelu %
  %17 = onnx.node "BiasGelu"(%16, %b) {name = "n17", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown, tensor<4xf32>) -> !onnx.unknown
  // CHECK: repro.gelu_tanh %
  %18 = onnx.node "FastGelu"(%17) {name = "n18", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.add {{.*}}, %arg1
  // CHECK: repro.gelu_tanh %
  %19 = onnx.node "FastGelu"(%18, %b) {name = "n19", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown, tensor<4xf32>) -> !onnx.unknown
  return %19 : !onnx.unknown
}

// -----

// Powers have the type of their base; the square and the inverse are one rounding of the same number.
// CHECK-LABEL: func.func @powers
func.func @powers(%x: tensor<?x4xf32, #repro.dims<"seq", "">>, %i: tensor<4xi32>, %l: tensor<4xi64>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %minus = onnx.weight "minus" {file = "", offset = 0 : i64, length = 4 : i64, data = "000080bf"} : tensor<1xf32>
  %wide = onnx.weight "wide" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<1x1x1xf32>
  // CHECK: repro.mul %arg0, %arg0
  %0 = onnx.node "Pow"(%x, %two) {name = "a", domain = "", version = 15 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<f32>) -> !onnx.unknown
  // CHECK: repro.reciprocal
  %1 = onnx.node "Pow"(%0, %minus) {name = "b", domain = "", version = 15 : i64, params = {}} : (!onnx.unknown, tensor<1xf32>) -> !onnx.unknown
  // CHECK: repro.pow {{.*}}, %wide {{.*}}numerics = "function-1"
  %2 = onnx.node "Pow"(%1, %wide) {name = "c", domain = "", version = 15 : i64, params = {}} : (!onnx.unknown, tensor<1x1x1xf32>) -> !onnx.unknown
  // CHECK: %[[E:.*]] = repro.cast %arg2 {{.*}} -> tensor<4xf32>
  // CHECK: repro.pow {{.*}}, %[[E]]
  %3 = onnx.node "Pow"(%x, %l) {name = "d", domain = "", version = 15 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<4xi64>) -> !onnx.unknown
  // CHECK: %[[B:.*]] = repro.cast %arg1 {{.*}} -> tensor<4xi64>
  // CHECK: %[[P:.*]] = repro.pow %[[B]], %arg2
  // CHECK: repro.cast %[[P]] {{.*}} -> tensor<4xi32>
  %4 = onnx.node "Pow"(%i, %l) {name = "e", domain = "", version = 15 : i64, params = {}} : (tensor<4xi32>, tensor<4xi64>) -> !onnx.unknown
  // CHECK: %[[F:.*]] = repro.cast %arg2 {{.*}} -> tensor<4xf32>
  // CHECK: %[[Q:.*]] = repro.pow %[[F]], %arg0
  // CHECK: repro.cast %[[Q]] {{.*}} -> tensor<?x4xi64, #repro.dims<"seq", "">>
  %5 = onnx.node "Pow"(%l, %x) {name = "f", domain = "", version = 15 : i64, params = {}} : (tensor<4xi64>, tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %2, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @bits
func.func @bits(%x: tensor<?xui8, #repro.dims<"seq">>, %y: tensor<1xui8>, %f: tensor<1xf32>) -> (!onnx.unknown, !onnx.unknown) {
  // CHECK: repro.shift_left %arg0, %arg1
  %0 = onnx.node "BitShift"(%x, %y) {name = "a", domain = "", version = 11 : i64, params = {direction = "LEFT"}} : (tensor<?xui8, #repro.dims<"seq">>, tensor<1xui8>) -> !onnx.unknown
  // CHECK: repro.shift_right
  %1 = onnx.node "BitShift"(%0, %y) {name = "b", domain = "", version = 11 : i64, params = {direction = "RIGHT"}} : (!onnx.unknown, tensor<1xui8>) -> !onnx.unknown
  // CHECK: repro.bitwise_and
  %2 = onnx.node "BitwiseAnd"(%1, %y) {name = "c", domain = "", version = 18 : i64, params = {}} : (!onnx.unknown, tensor<1xui8>) -> !onnx.unknown
  // CHECK: repro.bitwise_or
  %3 = onnx.node "BitwiseOr"(%2, %y) {name = "d", domain = "", version = 18 : i64, params = {}} : (!onnx.unknown, tensor<1xui8>) -> !onnx.unknown
  // CHECK: repro.bitwise_xor
  %4 = onnx.node "BitwiseXor"(%3, %y) {name = "e", domain = "", version = 18 : i64, params = {}} : (!onnx.unknown, tensor<1xui8>) -> !onnx.unknown
  // CHECK: repro.bitwise_not {{.*}} -> tensor<?xui8, #repro.dims<"seq">>
  %5 = onnx.node "BitwiseNot"(%4) {name = "f", domain = "", version = 18 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.less {{.*}} -> tensor<?xi1, #repro.dims<"seq">>
  %6 = onnx.node "Less"(%5, %y) {name = "g", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xui8>) -> !onnx.unknown
  // CHECK: repro.cast {{.*}} -> tensor<?xf32, #repro.dims<"seq">>
  %7 = onnx.node "CastLike"(%5, %f) {name = "h", domain = "", version = 19 : i64, params = {}} : (!onnx.unknown, tensor<1xf32>) -> !onnx.unknown
  return %6, %7 : !onnx.unknown, !onnx.unknown
}
