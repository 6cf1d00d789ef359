// Integers computed from dimensions are known as expressions. Kernels read them from computed values.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %zero = onnx.weight "zero" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %start = onnx.weight "start" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<i64>
  %step = onnx.weight "step" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<i64>
  %m1 = onnx.weight "m1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  // CHECK: repro.reshape %arg0 {{.*}} -> tensor<?x4xf32, #repro.dims<"batch*seq", "">>
  %0 = onnx.node "Flatten"(%x) {name = "a", domain = "", version = 13 : i64, params = {axis = 2 : i64}} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // A shape taken apart and put together in another order.
  %shape = onnx.node "Shape"(%x) {name = "b", domain = "", version = 15 : i64, params = {}} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %batch = onnx.node "Gather"(%shape, %zero) {name = "c", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %seq = onnx.node "Gather"(%shape, %one) {name = "d", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %both = onnx.node "Concat"(%seq, %batch, %m1) {name = "e", domain = "", version = 13 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, !onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.reshape %arg0 {{.*}} -> tensor<?x?x4xf32, #repro.dims<"seq", "batch", "">>
  %1 = onnx.node "Reshape"(%x, %both) {name = "f", domain = "", version = 13 : i64, params = {}} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  // -1 is no size, so none is equal to it.
  %none = onnx.node "Equal"(%shape, %m1) {name = "g", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %kept = onnx.node "Where"(%none, %one, %shape) {name = "h", domain = "", version = 16 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.expand {{.*}} -> tensor<?x?x4xi64, #repro.dims<"batch", "seq", "">>
  %2 = onnx.node "Expand"(%zero, %kept) {name = "i", domain = "", version = 13 : i64, params = {}} : (tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.iota {{.*}} -> tensor<?xi64, #repro.dims<"(seq+1)/2">>
  %length = onnx.node "Squeeze"(%seq) {name = "j", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %3 = onnx.node "Range"(%start, %length, %step) {name = "k", domain = "", version = 11 : i64, params = {}} : (tensor<i64>, !onnx.unknown, tensor<i64>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// The smaller of two dimensions, neither of which is known to be it, and the larger.
// CHECK-LABEL: func.func @smaller
func.func @smaller(%x: tensor<?x4xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %most = onnx.weight "most" {file = "", offset = 0 : i64, length = 8 : i64, data = "1000000000000000"} : tensor<1xi64>
  %zero = onnx.weight "zero" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  // CHECK: %[[N:.*]] = repro.reduce_sum {{.*}} -> tensor<1xi64>
  // CHECK: %[[LEAST:.*]] = repro.min %[[N]], {{.*}} -> tensor<1xi64>
  %n = onnx.node "Shape"(%x) {name = "a", domain = "", version = 15 : i64, params = {end = 1 : i64}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %min = onnx.node "Min"(%most, %n) {name = "b", domain = "", version = 13 : i64, params = {}} : (tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  %max = onnx.node "Max"(%n, %most) {name = "c", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.slice {{.*}} -> tensor<?x4xf32, #repro.dims<"min(seq,16)", "">>
  %0 = onnx.node "Slice"(%x, %zero, %min) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.expand {{.*}} -> tensor<?xi64, #repro.dims<"-min(seq,16)+seq+16">>
  %1 = onnx.node "Expand"(%one, %max) {name = "e", domain = "", version = 13 : i64, params = {}} : (tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.cast
  %2 = onnx.node "Cast"(%min) {name = "f", domain = "", version = 13 : i64, params = {to = 1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  return %0, %1, %2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @windows
func.func @windows(%x: tensor<?x4x?x?xf32, #repro.dims<"batch", "", "height", "width">>, %w: tensor<6x4x3x3xf32>, %t: tensor<4x6x2x2xf32>) -> (!onnx.unknown, !onnx.unknown) {
  // CHECK: repro.conv {{.*}} -> tensor<?x6x?x?xf32, #repro.dims<"batch", "", "(height+1)/2", "width-2">>
  %0 = onnx.node "Conv"(%x, %w) {name = "a", domain = "", version = 13 : i64, params = {pads = array<i64: 1, 0, 1, 0>, strides = array<i64: 2, 1>}} : (tensor<?x4x?x?xf32, #repro.dims<"batch", "", "height", "width">>, tensor<6x4x3x3xf32>) -> !onnx.unknown
  // CHECK: repro.conv_transpose {{.*}} -> tensor<?x6x?x?xf32, #repro.dims<"batch", "", "2*height", "3*width-1">>
  %1 = onnx.node "ConvTranspose"(%x, %t) {name = "b", domain = "", version = 13 : i64, params = {strides = array<i64: 2, 3>}} : (tensor<?x4x?x?xf32, #repro.dims<"batch", "", "height", "width">>, tensor<4x6x2x2xf32>) -> !onnx.unknown
  return %0, %1 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @read
func.func @read(%x: tensor<?x5xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  // CHECK: %[[ONES:.*]] = repro.expand {{.*}} -> tensor<?xi64, #repro.dims<"seq">>
  // CHECK: %[[N:.*]] = repro.reduce_sum %[[ONES]]
  // CHECK-NOT: repro.sizes
  // CHECK: repro.cast
  %shape = onnx.node "Shape"(%x) {name = "a", domain = "", version = 15 : i64, params = {}} : (tensor<?x5xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %0 = onnx.node "Cast"(%shape) {name = "b", domain = "", version = 13 : i64, params = {to = 1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.concat {{.*}} -> tensor<?x5xf32, #repro.dims<"2*seq", "">>
  %1 = onnx.node "Concat"(%x, %x) {name = "c", domain = "", version = 13 : i64, params = {axis = 0 : i64}} : (tensor<?x5xf32, #repro.dims<"seq", "">>, tensor<?x5xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %0, %1 : !onnx.unknown, !onnx.unknown
}
