// Data movement: every form of a node becomes one operation, and identities disappear.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @choose
func.func @choose(%x: tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>, %m: tensor<5x6xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %m1 = onnx.weight "m1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %far = onnx.weight "far" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %near = onnx.weight "near" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000080"} : tensor<1xi64>
  %four = onnx.weight "four" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %m3 = onnx.weight "m3" {file = "", offset = 0 : i64, length = 8 : i64, data = "fdffffffffffffff"} : tensor<1xi64>
  // CHECK: repro.transpose %arg0 {numerics = "none", perm = array<i64: 1, 2, 0>, version = 1 : i64} : {{.*}} -> tensor<?x6x?xf32, #repro.dims<"seq", "", "batch">>
  %0 = onnx.node "Transpose"(%x) {name = "a", domain = "", version = 23 : i64, params = {perm = array<i64: 1, 2, 0>}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %same = onnx.node "Transpose"(%x) {name = "b", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 2>}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // The last position, if there is one, backwards, and with attributes as before opset 10.
  // CHECK: repro.slice %arg0 {numerics = "none", starts = array<i64: 0, -1, 0>, steps = array<i64: 1, 1, 1>, {{.*}} -> tensor<?x?x6xf32, #repro.dims<"batch", "min(seq,1)", "">>
  %1 = onnx.node "Slice"(%same, %m1, %far, %one) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.slice %arg0 {{.*}}starts = array<i64: 0, -1, 0>, steps = array<i64: 1, -1, 1>{{.*}} -> tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>
  %2 = onnx.node "Slice"(%x, %m1, %near, %one, %m1) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.slice %arg1 {{.*}}starts = array<i64: 1, 4>, steps = array<i64: 1, 1>{{.*}} -> tensor<3x2xf32>
  %3 = onnx.node "Slice"(%m) {name = "e", domain = "", version = 9 : i64, params = {starts = array<i64: 1, -2>, ends = array<i64: -1, 99>}} : (tensor<5x6xf32>) -> !onnx.unknown
  // CHECK: repro.slice %arg1 {{.*}}starts = array<i64: 0, 4>, steps = array<i64: 1, -3>{{.*}} -> tensor<5x2xf32>
  %4 = onnx.node "Slice"(%m, %four, %near, %one, %m3) {name = "f", domain = "", version = 23 : i64, params = {}} : (tensor<5x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  // CHECK-NOT: repro.slice
  // CHECK: return
  %whole = onnx.node "Slice"(%m) {name = "g", domain = "", version = 9 : i64, params = {starts = array<i64: 0>, ends = array<i64: 99>, axes = array<i64: -1>}} : (tensor<5x6xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %whole : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<?x5xbf16, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %sizes = onnx.weight "sizes" {file = "", offset = 0 : i64, length = 16 : i64, data = "01000000000000000400000000000000"} : tensor<2xi64>
  // CHECK: %[[A:.*]] = repro.slice %arg0 {{.*}}starts = array<i64: 0, 0>{{.*}} -> tensor<?x1xbf16, #repro.dims<"seq", "">>
  // CHECK: %[[B:.*]] = repro.slice %arg0 {{.*}}starts = array<i64: 0, 1>{{.*}} -> tensor<?x4xbf16, #repro.dims<"seq", "">>
  %0:2 = onnx.node "Split"(%x, %sizes) {name = "a", domain = "", version = 13 : i64, params = {axis = 1 : i64}} : (tensor<?x5xbf16, #repro.dims<"seq", "">>, tensor<2xi64>) -> (!onnx.unknown, !onnx.unknown)
  // CHECK: repro.slice {{.*}} -> tensor<?x3xbf16, #repro.dims<"seq", "">>
  // CHECK: repro.slice {{.*}} -> tensor<?x2xbf16, #repro.dims<"seq", "">>
  %1:2 = onnx.node "Split"(%x) {name = "b", domain = "", version = 18 : i64, params = {axis = -1 : i64, num_outputs = 2 : i64}} : (tensor<?x5xbf16, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown)
  // CHECK: repro.concat %[[B]], %arg0, %[[A]] {axis = 1 : i64, {{.*}} -> tensor<?x10xbf16, #repro.dims<"seq", "">>
  %2 = onnx.node "Concat"(%0#1, %x, %0#0) {name = "c", domain = "", version = 13 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, tensor<?x5xbf16, #repro.dims<"seq", "">>, !onnx.unknown) -> !onnx.unknown
  %3 = onnx.node "Concat"(%x) {name = "d", domain = "", version = 13 : i64, params = {axis = 0 : i64}} : (tensor<?x5xbf16, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %1#0, %1#1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @beside
func.func @beside(%x: tensor<?x5xf32, #repro.dims<"seq", "">>, %v: tensor<f32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %pads = onnx.weight "pads" {file = "", offset = 0 : i64, length = 16 : i64, data = "0200000000000000ffffffffffffffff"} : tensor<2xi64>
  %axes = onnx.weight "axes" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %times = onnx.weight "times" {file = "", offset = 0 : i64, length = 16 : i64, data = "01000000000000000300000000000000"} : tensor<2xi64>
  %shape = onnx.weight "shape" {file = "", offset = 0 : i64, length = 24 : i64, data = "030000000000000001000000000000000100000000000000"} : tensor<3xi64>
  // CHECK: repro.pad %arg0, %arg1 {begins = array<i64: 0, 2>, {{.*}} -> tensor<?x6xf32, #repro.dims<"seq", "">>
  %0 = onnx.node "Pad"(%x, %pads, %v, %axes) {name = "a", domain = "", version = 18 : i64, params = {}} : (tensor<?x5xf32, #repro.dims<"seq", "">>, tensor<2xi64>, tensor<f32>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: %[[V:.*]] = repro.weight "f32 0000c03f"
  // CHECK: repro.pad %arg0, %[[V]] {begins = array<i64: 0, 1>, {{.*}} -> tensor<?x6xf32, #repro.dims<"seq", "">>
  %1 = onnx.node "Pad"(%x) {name = "b", domain = "", version = 10 : i64, params = {pads = array<i64: 0, 1, 0, 0>, value = 1.5 : f32}} : (tensor<?x5xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  // CHECK: repro.pad_reflect
  %none = onnx.absent
  %2 = onnx.node "Pad"(%x, %pads, %none, %axes) {name = "c", domain = "", version = 18 : i64, params = {mode = "reflect"}} : (tensor<?x5xf32, #repro.dims<"seq", "">>, tensor<2xi64>, !onnx.absent, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.pad_wrap %arg0 {begins = array<i64: 0, 0>, {{.*}} -> tensor<?x15xf32, #repro.dims<"seq", "">>
  %3 = onnx.node "Tile"(%x, %times) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<?x5xf32, #repro.dims<"seq", "">>, tensor<2xi64>) -> !onnx.unknown
  // CHECK: repro.expand %arg0 {{.*}} -> tensor<3x?x5xf32, #repro.dims<"", "seq", "">>
  %4 = onnx.node "Expand"(%x, %shape) {name = "e", domain = "", version = 13 : i64, params = {}} : (tensor<?x5xf32, #repro.dims<"seq", "">>, tensor<3xi64>) -> !onnx.unknown
  // CHECK: repro.trilu %arg0 {k = 1 : i64, numerics = "none", upper = 0 : i64
  %5 = onnx.node "Trilu"(%x, %axes) {name = "f", domain = "", version = 14 : i64, params = {upper = 0 : i64}} : (tensor<?x5xf32, #repro.dims<"seq", "">>, tensor<1xi64>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @made
func.func @made(%i: tensor<?x4xi64, #repro.dims<"seq", "">>, %x: tensor<2x8x3x5xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %seven = onnx.weight "seven" {file = "", offset = 0 : i64, length = 8 : i64, data = "0700000000000000"} : tensor<i64>
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<i64>
  %zero = onnx.weight "zero" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<i64>
  %values = onnx.weight "values" {file = "", offset = 0 : i64, length = 8 : i64, data = "000000000000803f"} : tensor<2xf32>
  %n2 = onnx.weight "n2" {file = "", offset = 0 : i64, length = 16 : i64, data = "03000000000000000500000000000000"} : tensor<2xi64>
  %shape = onnx.weight "shape" {file = "", offset = 0 : i64, length = 16 : i64, data = "2c01000000000000f401000000000000"} : tensor<2xi64>
  // CHECK: repro.one_hot %arg0, %values {axis = 1 : i64, {{.*}} -> tensor<?x7x4xf32, #repro.dims<"seq", "", "">>
  %0 = onnx.node "OneHot"(%i, %seven, %values) {name = "a", domain = "", version = 11 : i64, params = {axis = -2 : i64}} : (tensor<?x4xi64, #repro.dims<"seq", "">>, tensor<i64>, tensor<2xf32>) -> !onnx.unknown
  // Of constants, the result is a constant.
  // CHECK-NOT: repro.iota
  // CHECK: repro.weight "i64 4 {{[0-9a-f]*}}" {data = "0000000000000000020000000000000004000000000000000600000000000000"
  %1 = onnx.node "Range"(%zero, %seven, %two) {name = "b", domain = "", version = 11 : i64, params = {}} : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.unknown
  // CHECK: %[[V:.*]] = repro.weight "i32 05000000"
  // CHECK: %[[E:.*]] = repro.expand %[[V]] {{.*}} -> tensor<300x500xi32>
  %2 = onnx.node "ConstantOfShape"(%shape) {name = "c", domain = "", version = 9 : i64, params = {value = {name = "", data_type = 6 : i64, shape = array<i64: 1>, file = "", offset = 0 : i64, length = 4 : i64, data = "05000000"}}} : (tensor<2xi64>) -> !onnx.unknown
  // CHECK: %[[ONES:.*]] = repro.expand {{.*}} -> tensor<300x500xi64>
  // CHECK: %[[LOW:.*]] = repro.trilu %[[ONES]] {k = -1 : i64, numerics = "none", upper = 0 : i64
  // CHECK: repro.trilu %[[LOW]] {k = -1 : i64, numerics = "none", upper = 1 : i64
  %3 = onnx.node "EyeLike"(%2) {name = "d", domain = "", version = 9 : i64, params = {k = -1 : i64, dtype = 7 : i64}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.reverse_sequence {{.*}} {numerics = "none", time_axis = 1 : i64
  %s = onnx.node "ReverseSequence"(%x, %n2) {name = "e", domain = "", version = 10 : i64, params = {batch_axis = 0 : i64, time_axis = 1 : i64}} : (tensor<2x8x3x5xf32>, tensor<2xi64>) -> !onnx.unknown
  // CHECK: repro.depth_to_space {{.*}} {blocksize = 2 : i64, crd = 1 : i64, {{.*}} -> tensor<2x2x6x10xf32>
  %4 = onnx.node "DepthToSpace"(%s) {name = "f", domain = "", version = 13 : i64, params = {blocksize = 2 : i64, mode = "CRD"}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.space_to_depth {{.*}} -> tensor<2x8x3x5xf32>
  %5 = onnx.node "SpaceToDepth"(%4) {name = "g", domain = "", version = 13 : i64, params = {blocksize = 2 : i64}} : (!onnx.unknown) -> !onnx.unknown
  return %0, %1, %3, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @indices
func.func @indices(%x: tensor<?x5x4xf32, #repro.dims<"seq", "", "">>, %i: tensor<2x3xi32>, %k: tensor<?x7x1xi64, #repro.dims<"seq", "", "">>, %u: tensor<?x7x4xf32, #repro.dims<"seq", "", "">>, %e: tensor<?x5x9xi64, #repro.dims<"seq", "", "">>, %v: tensor<?x5x9xf32, #repro.dims<"seq", "", "">>, %s: tensor<7x4xf32>, %t: tensor<6x4xf32>, %n: tensor<7x1xi64>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK: %[[I:.*]] = repro.cast %arg1 {{.*}} -> tensor<2x3xi64>
  // CHECK: repro.gather %arg0, %[[I]] {axis = 1 : i64, {{.*}} -> tensor<?x2x3x4xf32, #repro.dims<"seq", "", "", "">>
  %0 = onnx.node "Gather"(%x, %i) {name = "a", domain = "", version = 13 : i64, params = {axis = -2 : i64}} : (tensor<?x5x4xf32, #repro.dims<"seq", "", "">>, tensor<2x3xi32>) -> !onnx.unknown
  // CHECK: repro.gather_nd %arg0, %arg2 {batch_dims = 1 : i64, {{.*}} -> tensor<?x7x4xf32, #repro.dims<"seq", "", "">>
  %1 = onnx.node "GatherND"(%x, %k) {name = "b", domain = "", version = 13 : i64, params = {batch_dims = 1 : i64}} : (tensor<?x5x4xf32, #repro.dims<"seq", "", "">>, tensor<?x7x1xi64, #repro.dims<"seq", "", "">>) -> !onnx.unknown
  // CHECK: repro.scatter_elements %arg0, %arg4, %arg5 {axis = 2 : i64, numerics = "ieee", reduction = 4 : i64
  %2 = onnx.node "ScatterElements"(%x, %e, %v) {name = "c", domain = "", version = 18 : i64, params = {axis = -1 : i64, reduction = "max"}} : (tensor<?x5x4xf32, #repro.dims<"seq", "", "">>, tensor<?x5x9xi64, #repro.dims<"seq", "", "">>, tensor<?x5x9xf32, #repro.dims<"seq", "", "">>) -> !onnx.unknown
  // CHECK: repro.scatter_nd %arg7, %arg8, %arg6 {numerics = "ieee", reduction = 1 : i64
  %3 = onnx.node "ScatterND"(%t, %n, %s) {name = "d", domain = "", version = 16 : i64, params = {reduction = "add"}} : (tensor<6x4xf32>, tensor<7x1xi64>, tensor<7x4xf32>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @resized
func.func @resized(%x: tensor<?x3x8x10xf32, #repro.dims<"batch", "", "", "">>, %b: tensor<?x3x8x10xui8, #repro.dims<"batch", "", "", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %none = onnx.absent
  %scales = onnx.weight "scales" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803f0000803f0000004000002040"} : tensor<4xf32>
  %sizes = onnx.weight "sizes" {file = "", offset = 0 : i64, length = 16 : i64, data = "04000000000000000500000000000000"} : tensor<2xi64>
  %roi = onnx.weight "roi" {file = "", offset = 0 : i64, length = 16 : i64, data = "000000000000803e0000803f0000403f"} : tensor<4xf32>
  // CHECK: repro.resize %arg0 {antialias = 0 : i64, coordinates = 0 : i64, cubic = -7.500000e-01 : f32, exclude_outside = 0 : i64, extrapolation = 0.000000e+00 : f32, numerics = "resize-1", order = 1 : i64, rounding = 0 : i64, scales = array<i64: 1065353216, 1065353216, 1073741824, 1075838976>, version = 1 : i64} : {{.*}} -> tensor<?x3x16x25xf32, #repro.dims<"batch", "", "", "">>
  %0 = onnx.node "Resize"(%x, %none, %scales) {name = "a", domain = "", version = 13 : i64, params = {mode = "linear"}} : (tensor<?x3x8x10xf32, #repro.dims<"batch", "", "", "">>, !onnx.absent, tensor<4xf32>) -> !onnx.unknown
  // CHECK: repro.resize %arg0 {antialias = 0 : i64, coordinates = 5 : i64, {{.*}}order = 3 : i64, roi = array<i64: 0, 0, 0, 1048576000, 1065353216, 1065353216, 1065353216, 1061158912>, {{.*}}scales = array<i64: 1065353216, 1065353216, 0, 0>{{.*}} -> tensor<?x3x4x5xf32, #repro.dims<"batch", "", "", "">>
  %1 = onnx.node "Resize"(%x, %roi, %none, %sizes) {name = "b", domain = "", version = 19 : i64, params = {mode = "cubic", axes = array<i64: 2, -1>, coordinate_transformation_mode = "tf_crop_and_resize"}} : (tensor<?x3x8x10xf32, #repro.dims<"batch", "", "", "">>, tensor<4xf32>, !onnx.absent, tensor<2xi64>) -> !onnx.unknown
  // CHECK: repro.resize %arg1 {{.*}}coordinates = 4 : i64, {{.*}}order = 0 : i64, rounding = 2 : i64, {{.*}} -> tensor<?x3x16x25xui8, #repro.dims<"batch", "", "", "">>
  %2 = onnx.node "Resize"(%b, %scales) {name = "c", domain = "", version = 10 : i64, params = {}} : (tensor<?x3x8x10xui8, #repro.dims<"batch", "", "", "">>, tensor<4xf32>) -> !onnx.unknown
  // One scale, 5 / 10: 8 elements become 4.
  // CHECK: repro.resize %arg0 {{.*}}scales = array<i64: 1065353216, 1065353216, 1056964608, 1056964608>{{.*}} -> tensor<?x3x4x5xf32, #repro.dims<"batch", "", "", "">>
  %large = onnx.weight "large" {file = "", offset = 0 : i64, length = 16 : i64, data = "06000000000000000500000000000000"} : tensor<2xi64>
  %3 = onnx.node "Resize"(%x, %none, %none, %large) {name = "d", domain = "", version = 19 : i64, params = {mode = "linear", axes = array<i64: 2, 3>, keep_aspect_ratio_policy = "not_larger"}} : (tensor<?x3x8x10xf32, #repro.dims<"batch", "", "", "">>, !onnx.absent, !onnx.absent, tensor<2xi64>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}
