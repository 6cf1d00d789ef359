// Data-dependent dimensions: bound to symbols where they are computed, expressions of symbols afterwards.
// RUN: %lower "%s" --split-input-file | %check
// RUN: %store "%s" --split-input-file > "%t.a" && %opt "%t.a" --split-input-file | diff - "%t.a"

// CHECK-LABEL: func.func @chosen
func.func @chosen(%x: tensor<?xf32, #repro.dims<"n">> {onnx.name = "x"}, %y: tensor<?x4xf32, #repro.dims<"n", "">> {onnx.name = "y"}) -> (!onnx.unknown {onnx.name = "a"}, !onnx.unknown {onnx.name = "b"}, !onnx.unknown {onnx.name = "c"}) {
  %zero = onnx.weight "zero" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %m1 = onnx.weight "m1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  // CHECK: %[[COUNT:.*]] = repro.reduce_sum
  // CHECK: repro.bind "nonzero_0" = %[[COUNT]][0] : tensor<1xi64>
  // CHECK: repro.slice {{.*}} -> tensor<?xi64, #repro.dims<"nonzero_0">>
  %0 = onnx.node "NonZero"(%x) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?xf32, #repro.dims<"n">>) -> !onnx.unknown
  %1 = onnx.node "Transpose"(%0) {name = "b", domain = "", version = 13 : i64, params = {perm = array<i64: 1, 0>}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.gather_nd {{.*}} -> tensor<?x4xf32, #repro.dims<"nonzero_0", "">>
  %2 = onnx.node "GatherND"(%y, %1) {name = "c", domain = "", version = 13 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"n", "">>, !onnx.unknown) -> !onnx.unknown
  // The same again is the same size, so both fit.
  // CHECK-NOT: repro.bind
  %3 = onnx.node "NonZero"(%x) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<?xf32, #repro.dims<"n">>) -> !onnx.unknown
  // CHECK: repro.concat {{.*}} -> tensor<2x?xi64, #repro.dims<"", "nonzero_0">>
  %4 = onnx.node "Concat"(%0, %3) {name = "e", domain = "", version = 13 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  // What is computed of its shape is known.
  %shape = onnx.node "Shape"(%2) {name = "f", domain = "", version = 15 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %n = onnx.node "Gather"(%shape, %zero) {name = "g", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %flat = onnx.node "Concat"(%m1, %n) {name = "h", domain = "", version = 13 : i64, params = {axis = 0 : i64}} : (tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.reshape {{.*}} -> tensor<4x?xf32, #repro.dims<"", "nonzero_0">>
  %5 = onnx.node "Reshape"(%2, %flat) {name = "i", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %2, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// A list keeps what is known of its elements; of a list of which nothing is known, 0 and -1 mean what they do.
// CHECK-LABEL: func.func @lists
func.func @lists(%x: tensor<?x6xf32, #repro.dims<"batch", "">> {onnx.name = "x"}, %k: tensor<1xi64> {onnx.name = "k"}, %s: tensor<3xi64> {onnx.name = "s"}) -> (!onnx.unknown {onnx.name = "a"}, !onnx.unknown {onnx.name = "b"}) {
  %m1 = onnx.weight "m1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %shape = onnx.node "Shape"(%x) {name = "a", domain = "", version = 15 : i64, params = {end = 1 : i64}} : (tensor<?x6xf32, #repro.dims<"batch", "">>) -> !onnx.unknown
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %list = onnx.node "Concat"(%shape, %k, %two) {name = "b", domain = "", version = 13 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.bind "reshape_0" = %arg1[0] : tensor<1xi64>
  // CHECK: repro.reshape %arg0 {{.*}} -> tensor<?x?x2xf32, #repro.dims<"batch", "reshape_0", "">>
  %0 = onnx.node "Reshape"(%x, %list) {name = "c", domain = "", version = 13 : i64, params = {}} : (tensor<?x6xf32, #repro.dims<"batch", "">>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.reduce_prod
  // CHECK: repro.bind "reshape_1" = %[[S:.*]][0] : tensor<3xi64>
  // CHECK: repro.bind "reshape_3" = %[[S]][2] : tensor<3xi64>
  // CHECK: repro.reshape %arg0 {{.*}} -> tensor<?x?x?xf32, #repro.dims<"reshape_1", "reshape_2", "reshape_3">>
  %1 = onnx.node "Reshape"(%x, %s) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<?x6xf32, #repro.dims<"batch", "">>, tensor<3xi64>) -> !onnx.unknown
  return %0, %1 : !onnx.unknown, !onnx.unknown
}
