// Sliding windows: convolutions with every form of padding.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @convolutions
func.func @convolutions(%x: tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, %l: tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>, %w: tensor<6x4x3x3xf32>, %v: tensor<6x4x5xf32>, %b: tensor<6xf32>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %g = onnx.weight "g" {file = "w.bin", offset = 0 : i64, length = 432 : i64} : tensor<6x2x3x3xf32>
  // CHECK: repro.conv %arg0, %arg2 {dilations = array<i64: 1, 1>, groups = 1 : i64, numerics = "fp32-1", pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, version = 1 : i64} {{.*}} -> tensor<?x6x7x6xf32, #repro.dims<"batch", "", "", "">>
  %0 = onnx.node "Conv"(%x, %w) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  // CHECK: repro.conv %arg0, %g, %arg4 {dilations = array<i64: 2, 1>, groups = 2 : i64, {{.*}}pads = array<i64: 1, 2, 3, 0>, strides = array<i64: 2, 3>{{.*}} -> tensor<?x6x5x3xf32
  %1 = onnx.node "Conv"(%x, %g, %b) {name = "b", domain = "", version = 22 : i64, params = {auto_pad = "NOTSET", group = 2 : i64, kernel_shape = array<i64: 3, 3>, dilations = array<i64: 2, 1>, strides = array<i64: 2, 3>, pads = array<i64: 1, 2, 3, 0>}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> !onnx.unknown
  // An odd pad: one more at the end, or at the begin.
  // CHECK: repro.conv {{.*}}pads = array<i64: 1, 0, 1, 1>{{.*}} -> tensor<?x6x5x4xf32
  %2 = onnx.node "Conv"(%x, %w) {name = "c", domain = "", version = 13 : i64, params = {auto_pad = "SAME_UPPER", strides = array<i64: 2, 2>}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  // CHECK: repro.conv {{.*}}pads = array<i64: 1, 1, 1, 0>{{.*}} -> tensor<?x6x5x4xf32
  %3 = onnx.node "Conv"(%x, %w) {name = "d", domain = "", version = 13 : i64, params = {auto_pad = "SAME_LOWER", strides = array<i64: 2, 2>}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  // A dimension of any length stays what it is where the pads make up for the kernel.
  // CHECK: repro.conv %arg1, %arg3, %arg4 {dilations = array<i64: 3>{{.*}}pads = array<i64: 6, 6>{{.*}} -> tensor<?x6x?xf32, #repro.dims<"batch", "", "length">>
  %4 = onnx.node "Conv"(%l, %v, %b) {name = "e", domain = "", version = 13 : i64, params = {auto_pad = "SAME_UPPER", dilations = array<i64: 3>}} : (tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>, tensor<6x4x5xf32>, tensor<6xf32>) -> !onnx.unknown
  // CHECK: repro.conv {{.*}}pads = array<i64: 0, 0, 0, 0>{{.*}} -> tensor<?x6x7x6xf32
  %5 = onnx.node "Conv"(%x, %w) {name = "f", domain = "", version = 13 : i64, params = {auto_pad = "VALID", pads = array<i64: 1, 1, 1, 1>}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @transposed
func.func @transposed(%x: tensor<2x4x3xf32>, %w: tensor<4x5x3xf32>, %b: tensor<10xf32>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK: repro.conv_transpose %arg0, %arg1, %arg2 {dilations = array<i64: 1>, groups = 2 : i64, numerics = "fp32-1", output_padding = array<i64: 1>, pads = array<i64: 1, 0>, strides = array<i64: 2>, version = 1 : i64} {{.*}} -> tensor<2x10x7xf32>
  %0 = onnx.node "ConvTranspose"(%x, %w, %b) {name = "a", domain = "", version = 22 : i64, params = {group = 2 : i64, strides = array<i64: 2>, pads = array<i64: 1, 0>, output_padding = array<i64: 1>}} : (tensor<2x4x3xf32>, tensor<4x5x3xf32>, tensor<10xf32>) -> !onnx.unknown
  // CHECK: repro.conv_transpose {{.*}}pads = array<i64: 1, 0>{{.*}} -> tensor<2x5x6xf32>
  %1 = onnx.node "ConvTranspose"(%x, %w) {name = "b", domain = "", version = 13 : i64, params = {strides = array<i64: 2>, output_shape = array<i64: 6>}} : (tensor<2x4x3xf32>, tensor<4x5x3xf32>) -> !onnx.unknown
  // CHECK: repro.conv_transpose {{.*}}pads = array<i64: 0, 1>{{.*}} -> tensor<2x5x6xf32>
  %2 = onnx.node "ConvTranspose"(%x, %w) {name = "c", domain = "", version = 13 : i64, params = {strides = array<i64: 2>, auto_pad = "SAME_UPPER"}} : (tensor<2x4x3xf32>, tensor<4x5x3xf32>) -> !onnx.unknown
  // CHECK: repro.conv_transpose {{.*}}pads = array<i64: 1, 0>{{.*}} -> tensor<2x5x6xf32>
  %3 = onnx.node "ConvTranspose"(%x, %w) {name = "d", domain = "", version = 13 : i64, params = {strides = array<i64: 2>, auto_pad = "SAME_LOWER"}} : (tensor<2x4x3xf32>, tensor<4x5x3xf32>) -> !onnx.unknown
  // CHECK: repro.conv_transpose {{.*}}output_padding = array<i64: 0>, pads = array<i64: 0, 0>{{.*}} -> tensor<2x5x7xf32>
  %4 = onnx.node "ConvTranspose"(%x, %w) {name = "e", domain = "", version = 13 : i64, params = {strides = array<i64: 2>, auto_pad = "VALID"}} : (tensor<2x4x3xf32>, tensor<4x5x3xf32>) -> !onnx.unknown
  // Longer than any tap reaches.
  // CHECK: repro.conv_transpose {{.*}}output_padding = array<i64: 2>, pads = array<i64: 0, 0>{{.*}} -> tensor<2x5x9xf32>
  %5 = onnx.node "ConvTranspose"(%x, %w) {name = "f", domain = "", version = 13 : i64, params = {strides = array<i64: 2>, output_shape = array<i64: 9>}} : (tensor<2x4x3xf32>, tensor<4x5x3xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @pools
func.func @pools(%x: tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>, %o: tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK: repro.max_pool %arg0 {ceil_mode = 1 : i64, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, numerics = "order", pads = array<i64: 1, 0, 1, 1>, strides = array<i64: 3, 3>, version = 1 : i64} {{.*}} -> tensor<?x4x4x3xf32
  // CHECK: repro.max_pool_indices %arg0 {ceil_mode = 1 : i64, column_major = 1 : i64, {{.*}} -> tensor<?x4x4x3xi64
  %0:2 = onnx.node "MaxPool"(%x) {name = "a", domain = "", version = 22 : i64, params = {kernel_shape = array<i64: 3, 2>, strides = array<i64: 3, 3>, pads = array<i64: 1, 0, 1, 1>, ceil_mode = 1 : i64, storage_order = 1 : i64}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> (!onnx.unknown, !onnx.unknown)
  // CHECK-NOT: max_pool_indices
  // CHECK: repro.max_pool %arg0 {ceil_mode = 0 : i64, {{.*}}pads = array<i64: 0, 0, 1, 0>, strides = array<i64: 2, 2>{{.*}} -> tensor<?x4x5x4xf32
  %1 = onnx.node "MaxPool"(%x) {name = "b", domain = "", version = 13 : i64, params = {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, auto_pad = "SAME_UPPER", ceil_mode = 1 : i64}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  // CHECK: repro.average_pool %arg1 {ceil_mode = 0 : i64, count_include_pad = 1 : i64, dilations = array<i64: 2>, kernel = array<i64: 3>, numerics = "fp32-1", pads = array<i64: 2, 2>{{.*}} -> tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>
  %2 = onnx.node "AveragePool"(%o) {name = "c", domain = "", version = 19 : i64, params = {kernel_shape = array<i64: 3>, dilations = array<i64: 2>, pads = array<i64: 2, 2>, count_include_pad = 1 : i64}} : (tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>) -> !onnx.unknown
  // The window that would begin behind the operand is none.
  // CHECK: repro.average_pool %arg0 {ceil_mode = 1 : i64, count_include_pad = 0 : i64, {{.*}} -> tensor<?x4x3x2xf32
  %3 = onnx.node "AveragePool"(%x) {name = "d", domain = "", version = 13 : i64, params = {kernel_shape = array<i64: 2, 2>, strides = array<i64: 4, 4>, pads = array<i64: 1, 0, 1, 1>, ceil_mode = 1 : i64}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  // CHECK: repro.lp_pool {{.*}}p = 2 : i64
  %4 = onnx.node "LpPool"(%x) {name = "e", domain = "", version = 18 : i64, params = {kernel_shape = array<i64: 2, 2>}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  // CHECK: repro.reduce_mean %arg0 {axes = array<i64: 2, 3>, keepdims = 1 : i64
  %5 = onnx.node "GlobalAveragePool"(%x) {name = "f", domain = "", version = 13 : i64, params = {}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  // CHECK: repro.reduce_max %arg1 {axes = array<i64: 2>, keepdims = 1 : i64
  %6 = onnx.node "GlobalMaxPool"(%o) {name = "g", domain = "", version = 13 : i64, params = {}} : (tensor<?x4x?xf32, #repro.dims<"batch", "", "length">>) -> !onnx.unknown
  // CHECK: repro.reduce_l1
  %7 = onnx.node "GlobalLpPool"(%x) {name = "h", domain = "", version = 13 : i64, params = {p = 1 : i64}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  return %0#0, %0#1, %1, %2, %3, %4, %5, %6, %7 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// Local response: the mean of squares over channels around each, as a window over a spatial dimension.
// CHECK-LABEL: func.func @local
func.func @local(%x: tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown {
  // CHECK: %[[S:.*]] = repro.mul %arg0, %arg0
  // CHECK: %[[R:.*]] = repro.reshape %[[S]] {{.*}} -> tensor<?x1x4x9x8xf32, #repro.dims<"batch", "", "", "", "">>
  // CHECK: %[[P:.*]] = repro.average_pool %[[R]] {ceil_mode = 0 : i64, count_include_pad = 1 : i64, {{.*}}kernel = array<i64: 4, 1, 1>, {{.*}}pads = array<i64: 1, 0, 0, 2, 0, 0>, strides = array<i64: 1, 1, 1>{{.*}} -> tensor<?x1x4x9x8xf32, #repro.dims<"batch", "", "", "", "">>
  // CHECK: %[[M:.*]] = repro.reshape %[[P]] {{.*}} -> tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>
  // CHECK: %[[A:.*]] = repro.mul %[[M]],
  // CHECK: %[[B:.*]] = repro.add %[[A]],
  // CHECK: %[[D:.*]] = repro.pow %[[B]],
  // CHECK: repro.div %arg0, %[[D]]
  %0 = onnx.node "LRN"(%x) {name = "a", domain = "", version = 13 : i64, params = {size = 4 : i64, alpha = 0.5 : f32, beta = 0.75 : f32, bias = 2.0 : f32}} : (tensor<?x4x9x8xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  return %0 : !onnx.unknown
}
