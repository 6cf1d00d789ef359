// Sliding windows that do not fit or are not covered are refused by name.
// RUN: %not %lower "%s" --split-input-file 2>&1 | %check --implicit-check-not error:

// CHECK: error: Conv (domain ai.onnx opset 13, node "rank"): covered are one to three spatial dimensions; the operand has rank 2
// CHECK: error: Conv (domain ai.onnx opset 13, node "kernel"): attribute "kernel_shape" is not the kernel of the weights
// CHECK: error: Conv (domain ai.onnx opset 13, node "strides"): attribute "strides" has 1 numbers for 2 spatial dimensions
// CHECK: error: Conv (domain ai.onnx opset 13, node "groups"): channels do not divide into 3 groups
// CHECK: error: Conv (domain ai.onnx opset 13, node "channels"): 4 channels, weights [6, 4, 3, 3], groups 2
// CHECK: error: Conv (domain ai.onnx opset 13, node "pad"): attribute "auto_pad" is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER
// CHECK: error: Conv (domain ai.onnx opset 13, node "negative"): attribute "pads" contains -1
// CHECK: error: Conv (domain ai.onnx opset 13, node "same"): attribute "auto_pad" with a stride and a spatial dimension that is not a constant
// CHECK: error: Conv (domain ai.onnx opset 13, node "bias"): a bias that does not have an element for each channel of the result
// CHECK: error: ConvTranspose (domain ai.onnx opset 13, node "less"): pads that leave less than nothing
// CHECK: error: ConvTranspose (domain ai.onnx opset 13, node "shape"): output_padding or output_shape does not have a number for each spatial dimension
func.func @reasons(%m: tensor<4x9xf32>, %x: tensor<2x4x9x8xf32>, %o: tensor<2x4x9x?xf32, #repro.dims<"", "", "", "width">>, %w: tensor<6x4x3x3xf32>, %t: tensor<4x6x3x3xf32>, %b: tensor<4xf32>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %0 = onnx.node "Conv"(%m, %m) {name = "rank", domain = "", version = 13 : i64, params = {}} : (tensor<4x9xf32>, tensor<4x9xf32>) -> !onnx.unknown
  %1 = onnx.node "Conv"(%x, %w) {name = "kernel", domain = "", version = 13 : i64, params = {kernel_shape = array<i64: 3, 2>}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %2 = onnx.node "Conv"(%x, %w) {name = "strides", domain = "", version = 13 : i64, params = {strides = array<i64: 3>}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %3 = onnx.node "Conv"(%x, %w) {name = "groups", domain = "", version = 13 : i64, params = {group = 3 : i64}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %4 = onnx.node "Conv"(%x, %w) {name = "channels", domain = "", version = 13 : i64, params = {group = 2 : i64}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %5 = onnx.node "Conv"(%x, %w) {name = "pad", domain = "", version = 13 : i64, params = {auto_pad = "SAME"}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %6 = onnx.node "Conv"(%x, %w) {name = "negative", domain = "", version = 13 : i64, params = {pads = array<i64: 0, -1, 0, 0>}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %8 = onnx.node "Conv"(%o, %w) {name = "same", domain = "", version = 13 : i64, params = {auto_pad = "SAME_UPPER", strides = array<i64: 2, 2>}} : (tensor<2x4x9x?xf32, #repro.dims<"", "", "", "width">>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  %9 = onnx.node "Conv"(%x, %w, %b) {name = "bias", domain = "", version = 13 : i64, params = {}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>, tensor<4xf32>) -> !onnx.unknown
  %10 = onnx.node "ConvTranspose"(%x, %t) {name = "less", domain = "", version = 13 : i64, params = {pads = array<i64: 9, 9, 9, 9>}} : (tensor<2x4x9x8xf32>, tensor<4x6x3x3xf32>) -> !onnx.unknown
  %11 = onnx.node "ConvTranspose"(%x, %w) {name = "shape", domain = "", version = 13 : i64, params = {output_shape = array<i64: 9>}} : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5, %6, %8, %9, %10, %11 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK: error: MaxPool (domain ai.onnx opset 13, node "kernel"): there is no kernel for the spatial dimensions
// CHECK: error: AveragePool (domain ai.onnx opset 13, node "open"): spatial dimension 0 is not a constant
// CHECK: error: LpPool (domain ai.onnx opset 13, node "power"): attribute "p" is 0
// CHECK: error: GlobalLpPool (domain ai.onnx opset 13, node "global"): attribute "p" is -1
func.func @pools(%x: tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, %o: tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %0 = onnx.node "MaxPool"(%x) {name = "kernel", domain = "", version = 13 : i64, params = {}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  %1 = onnx.node "AveragePool"(%o) {name = "open", domain = "", version = 13 : i64, params = {ceil_mode = 1 : i64, kernel_shape = array<i64: 3>, pads = array<i64: 0, 4>}} : (tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>) -> !onnx.unknown
  %2 = onnx.node "LpPool"(%x) {name = "power", domain = "", version = 13 : i64, params = {kernel_shape = array<i64: 2, 2>, p = 0 : i64}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  %3 = onnx.node "GlobalLpPool"(%x) {name = "global", domain = "", version = 13 : i64, params = {p = -1 : i64}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}
