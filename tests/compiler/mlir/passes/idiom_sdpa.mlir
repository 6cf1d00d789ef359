// choices.10: graphs that are recognized as attention, and near misses.
// Long because each variant is a graph of its own.
// RUN: %recognize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @plain
// CHECK-SAME: attributes {plan.choices = ["sdpa-1"]}
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @plain(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "MatMul"(%v6, %v) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @matrices
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @matrices(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Shape"(%k) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %v4 = onnx.node "Slice"(%v0, %c2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %v7 = onnx.node "Slice"(%v0, %c5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v8 = onnx.node "Concat"(%c1, %v4, %v7) {name = "v8", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (tensor<1xi64>, !onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v9 = onnx.node "Reshape"(%k, %v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "Transpose"(%v9) {name = "v10", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 1>}} : (!onnx.unknown) -> !onnx.unknown
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c12 = onnx.weight "c12" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %v13 = onnx.node "Slice"(%v0, %c11, %c12) {name = "v13", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %v16 = onnx.node "Slice"(%v0, %c14, %c15) {name = "v16", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c17 = onnx.weight "c17" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c18 = onnx.weight "c18" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %v19 = onnx.node "Slice"(%v0, %c17, %c18) {name = "v19", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v20 = onnx.node "Concat"(%v13, %v16, %v19) {name = "v20", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, !onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Reshape"(%v10, %v20) {name = "v21", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %c22 = onnx.weight "c22" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v23 = onnx.node "Mul"(%q, %c22) {name = "v23", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c24 = onnx.weight "c24" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v25 = onnx.node "Mul"(%v21, %c24) {name = "v25", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v26 = onnx.node "MatMul"(%v23, %v25) {name = "v26", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v27 = onnx.node "Softmax"(%v26) {name = "v27", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v28 = onnx.node "MatMul"(%v27, %v) {name = "v28", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v28 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @late
// CHECK: %[[K:.*]] = repro.transpose %arg1 {numerics = "none", perm = array<i64: 0, 2, 1, 3>
// CHECK: %[[Y:.*]] = repro.attention %arg0, %[[K]], %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @late(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x?x4x8xf32, #repro.dims<"batch", "seq", "", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 3, 1>}} : (tensor<?x?x4x8xf32, #repro.dims<"batch", "seq", "", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "MatMul"(%v6, %v) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @one_scale
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 0.353553385 : f32
// CHECK-NEXT: return %[[Y]]
func.func @one_scale(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v1 = onnx.node "MatMul"(%q, %v0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53e"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Softmax"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v4, %v) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v5 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @divisor
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 2.500000e-01 : f32
// CHECK-NEXT: return %[[Y]]
func.func @divisor(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v1 = onnx.node "MatMul"(%q, %v0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "00008040"} : tensor<f32>
  %v3 = onnx.node "Div"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Softmax"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v4, %v) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v5 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @no_scale
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 1.000000e+00 : f32
// CHECK-NEXT: return %[[Y]]
func.func @no_scale(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v1 = onnx.node "MatMul"(%q, %v0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v2 = onnx.node "Softmax"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "MatMul"(%v2, %v) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v3 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @mask
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2, %arg3 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64, mask = 1 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @mask(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %m: tensor<?x1x?x?xf32, #repro.dims<"batch", "", "seq", "seq">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Add"(%v5, %m) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x1x?x?xf32, #repro.dims<"batch", "", "seq", "seq">>) -> !onnx.unknown
  %v7 = onnx.node "Softmax"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "MatMul"(%v7, %v) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @guard
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2, %arg3 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64, mask = 1 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @guard(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %m: tensor<?x1x?x?xf32, #repro.dims<"batch", "", "seq", "seq">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Add"(%v5, %m) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x1x?x?xf32, #repro.dims<"batch", "", "seq", "seq">>) -> !onnx.unknown
  %v7 = onnx.node "Softmax"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "IsNaN"(%v7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000000"} : tensor<f32>
  %v10 = onnx.node "Where"(%v8, %c9, %v7) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v11 = onnx.node "MatMul"(%v10, %v) {name = "v11", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v11 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @few_heads
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 2 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @few_heads(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x2x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x2x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %v1 = onnx.node "Unsqueeze"(%k, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x2x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Shape"(%k) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x2x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c4 = onnx.weight "c4" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v5 = onnx.node "Slice"(%v2, %c3, %c4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %v10 = onnx.node "Slice"(%v2, %c8, %c9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v11 = onnx.node "Concat"(%v5, %c6, %c7, %v10) {name = "v11", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  %c12 = onnx.weight "c12" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c13 = onnx.weight "c13" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v14 = onnx.node "Slice"(%v2, %c12, %c13) {name = "v14", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c16 = onnx.weight "c16" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c17 = onnx.weight "c17" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %v18 = onnx.node "Slice"(%v2, %c16, %c17) {name = "v18", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v19 = onnx.node "Concat"(%v14, %c15, %v18) {name = "v19", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  %v20 = onnx.node "Expand"(%v1, %v11) {name = "v20", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Reshape"(%v20, %v19) {name = "v21", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %c22 = onnx.weight "c22" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %v23 = onnx.node "Unsqueeze"(%v, %c22) {name = "v23", domain = "", version = 23 : i64, params = {}} : (tensor<?x2x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v24 = onnx.node "Shape"(%v) {name = "v24", domain = "", version = 23 : i64, params = {}} : (tensor<?x2x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c25 = onnx.weight "c25" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c26 = onnx.weight "c26" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v27 = onnx.node "Slice"(%v24, %c25, %c26) {name = "v27", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c28 = onnx.weight "c28" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c29 = onnx.weight "c29" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c30 = onnx.weight "c30" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c31 = onnx.weight "c31" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %v32 = onnx.node "Slice"(%v24, %c30, %c31) {name = "v32", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v33 = onnx.node "Concat"(%v27, %c28, %c29, %v32) {name = "v33", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  %c34 = onnx.weight "c34" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c35 = onnx.weight "c35" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v36 = onnx.node "Slice"(%v24, %c34, %c35) {name = "v36", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c37 = onnx.weight "c37" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c38 = onnx.weight "c38" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %c39 = onnx.weight "c39" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %v40 = onnx.node "Slice"(%v24, %c38, %c39) {name = "v40", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v41 = onnx.node "Concat"(%v36, %c37, %v40) {name = "v41", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, tensor<1xi64>, !onnx.unknown) -> !onnx.unknown
  %v42 = onnx.node "Expand"(%v23, %v33) {name = "v42", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v43 = onnx.node "Reshape"(%v42, %v41) {name = "v43", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v44 = onnx.node "Transpose"(%v21) {name = "v44", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (!onnx.unknown) -> !onnx.unknown
  %c45 = onnx.weight "c45" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v46 = onnx.node "Mul"(%q, %c45) {name = "v46", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c47 = onnx.weight "c47" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v48 = onnx.node "Mul"(%v44, %c47) {name = "v48", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v49 = onnx.node "MatMul"(%v46, %v48) {name = "v49", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v50 = onnx.node "Softmax"(%v49) {name = "v50", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v51 = onnx.node "MatMul"(%v50, %v43) {name = "v51", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v51 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @more_keys
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2, %arg3 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64, mask = 1 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @more_keys(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "past", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "past", "">>, %m: tensor<?x?xf32, #repro.dims<"seq", "past">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "past", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Add"(%v5, %m) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?xf32, #repro.dims<"seq", "past">>) -> !onnx.unknown
  %v7 = onnx.node "Softmax"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "MatMul"(%v7, %v) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "past", "">>) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @softcap
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 4 : i64,{{.*}} scale = 0.353553385 : f32{{.*}} softcap = 3.000000e+01 : f32
// CHECK-NEXT: return %[[Y]]
func.func @softcap(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v1 = onnx.node "MatMul"(%q, %v0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53e"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c4 = onnx.weight "c4" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000f041"} : tensor<f32>
  %v5 = onnx.node "Div"(%v3, %c4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v6 = onnx.node "Tanh"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000f041"} : tensor<f32>
  %v8 = onnx.node "Mul"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Softmax"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "MatMul"(%v9, %v) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v10 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @keys_are_read
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2
// CHECK: return %[[Y]], %{{.*}}
func.func @keys_are_read(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "MatMul"(%v6, %v) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v8 = onnx.node "Neg"(%k) {name = "v8", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v7, %v8 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @weights_are_read
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @weights_are_read(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "MatMul"(%v6, %v) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v7, %v6 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @scores_are_read
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @scores_are_read(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "MatMul"(%v6, %v) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v7, %v5 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @guarded_are_read
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @guarded_are_read(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "IsNaN"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000000"} : tensor<f32>
  %v9 = onnx.node "Where"(%v7, %c8, %v6) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "MatMul"(%v9, %v) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v10, %v9 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_axis
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @other_axis(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = 1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "MatMul"(%v6, %v) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @guard_of_one
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @guard_of_one(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Softmax"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "IsNaN"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Where"(%v7, %c8, %v6) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "MatMul"(%v9, %v) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v10 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @two_caps
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @two_caps(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000f041"} : tensor<f32>
  %v7 = onnx.node "Div"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v8 = onnx.node "Tanh"(%v7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000f841"} : tensor<f32>
  %v10 = onnx.node "Mul"(%v8, %c9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v11 = onnx.node "Softmax"(%v10) {name = "v11", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v12 = onnx.node "MatMul"(%v11, %v) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @scaled_after_mask
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @scaled_after_mask(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %m: tensor<?x1x?x?xf32, #repro.dims<"batch", "", "seq", "seq">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Add"(%v5, %m) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x1x?x?xf32, #repro.dims<"batch", "", "seq", "seq">>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v8 = onnx.node "Mul"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Softmax"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "MatMul"(%v9, %v) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v10 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @mask_of_rank_1
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @mask_of_rank_1(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %m: tensor<?xf32, #repro.dims<"seq">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Add"(%v5, %m) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?xf32, #repro.dims<"seq">>) -> !onnx.unknown
  %v7 = onnx.node "Softmax"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "MatMul"(%v7, %v) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @mask_of_one_column
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @mask_of_one_column(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %m: tensor<?x1x?x1xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v2 = onnx.node "Mul"(%q, %c1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v0, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v2, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Add"(%v5, %m) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x1x?x1xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v7 = onnx.node "Softmax"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "MatMul"(%v7, %v) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @divided_by_scores
// CHECK-NOT: repro.attention
// CHECK: repro.softmax
// CHECK-NOT: repro.attention
// CHECK: return
func.func @divided_by_scores(%q: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %v: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Transpose"(%k) {name = "v0", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 3, 2>}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  %v1 = onnx.node "MatMul"(%q, %v0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "00008040"} : tensor<f32>
  %v3 = onnx.node "Div"(%c2, %v1) {name = "v3", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Softmax"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "MatMul"(%v4, %v) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>) -> !onnx.unknown
  return %v5 : !onnx.unknown
}

// -----

// Sizes that are constant: the optimizer of the exporter joins the reshapes of the repeated keys.
// CHECK-LABEL: func.func @few_heads_as_matrices
// CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 2 : i64,{{.*}} scale = 0.353553355 : f32
// CHECK-NEXT: return %[[Y]]
func.func @few_heads_as_matrices(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>) -> (!onnx.unknown) {
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %wide = onnx.weight "wide" {file = "", offset = 0 : i64, length = 40 : i64, data = "01000000000000000200000000000000020000000000000003000000000000000800000000000000"} : tensor<5xi64>
  %matrices = onnx.weight "matrices" {file = "", offset = 0 : i64, length = 24 : i64, data = "040000000000000003000000000000000800000000000000"} : tensor<3xi64>
  %turned = onnx.weight "turned" {file = "", offset = 0 : i64, length = 32 : i64, data = "0100000000000000040000000000000008000000000000000300000000000000"} : tensor<4xi64>
  %heads = onnx.weight "heads" {file = "", offset = 0 : i64, length = 32 : i64, data = "0100000000000000040000000000000003000000000000000800000000000000"} : tensor<4xi64>
  %by = onnx.weight "by" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v1 = onnx.node "Unsqueeze"(%k, %two) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<1x2x3x8xf32>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Expand"(%v1, %wide) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<5xi64>) -> !onnx.unknown
  %v3 = onnx.node "Reshape"(%v2, %matrices) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<3xi64>) -> !onnx.unknown
  %v4 = onnx.node "Transpose"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 1>}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "Reshape"(%v4, %turned) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<4xi64>) -> !onnx.unknown
  %v6 = onnx.node "Unsqueeze"(%v, %two) {name = "v6", domain = "", version = 23 : i64, params = {}} : (tensor<1x2x3x8xf32>, tensor<1xi64>) -> !onnx.unknown
  %v7 = onnx.node "Expand"(%v6, %wide) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<5xi64>) -> !onnx.unknown
  %v8 = onnx.node "Reshape"(%v7, %heads) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<4xi64>) -> !onnx.unknown
  %v9 = onnx.node "Mul"(%q, %by) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<1x4x3x8xf32>, tensor<f32>) -> !onnx.unknown
  %v10 = onnx.node "Mul"(%v5, %by) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v11 = onnx.node "MatMul"(%v9, %v10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v12 = onnx.node "Softmax"(%v11) {name = "v12", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v13 = onnx.node "MatMul"(%v12, %v8) {name = "v13", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v13 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_matrices
// CHECK-NOT: repro.attention
func.func @other_matrices(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>) -> (!onnx.unknown) {
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %wide = onnx.weight "wide" {file = "", offset = 0 : i64, length = 40 : i64, data = "01000000000000000200000000000000020000000000000003000000000000000800000000000000"} : tensor<5xi64>
  %matrices = onnx.weight "matrices" {file = "", offset = 0 : i64, length = 24 : i64, data = "040000000000000008000000000000000300000000000000"} : tensor<3xi64>
  %turned = onnx.weight "turned" {file = "", offset = 0 : i64, length = 32 : i64, data = "0100000000000000040000000000000008000000000000000300000000000000"} : tensor<4xi64>
  %heads = onnx.weight "heads" {file = "", offset = 0 : i64, length = 32 : i64, data = "0100000000000000040000000000000003000000000000000800000000000000"} : tensor<4xi64>
  %by = onnx.weight "by" {file = "", offset = 0 : i64, length = 4 : i64, data = "f037183f"} : tensor<f32>
  %v1 = onnx.node "Unsqueeze"(%k, %two) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<1x2x3x8xf32>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Expand"(%v1, %wide) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<5xi64>) -> !onnx.unknown
  %v3 = onnx.node "Reshape"(%v2, %matrices) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<3xi64>) -> !onnx.unknown
  %v4 = onnx.node "Transpose"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 1, 2>}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "Reshape"(%v4, %turned) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<4xi64>) -> !onnx.unknown
  %v6 = onnx.node "Unsqueeze"(%v, %two) {name = "v6", domain = "", version = 23 : i64, params = {}} : (tensor<1x2x3x8xf32>, tensor<1xi64>) -> !onnx.unknown
  %v7 = onnx.node "Expand"(%v6, %wide) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<5xi64>) -> !onnx.unknown
  %v8 = onnx.node "Reshape"(%v7, %heads) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<4xi64>) -> !onnx.unknown
  %v9 = onnx.node "Mul"(%q, %by) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<1x4x3x8xf32>, tensor<f32>) -> !onnx.unknown
  %v10 = onnx.node "Mul"(%v5, %by) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v11 = onnx.node "MatMul"(%v9, %v10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v12 = onnx.node "Softmax"(%v11) {name = "v12", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  %v13 = onnx.node "MatMul"(%v12, %v8) {name = "v13", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v13 : !onnx.unknown
}
