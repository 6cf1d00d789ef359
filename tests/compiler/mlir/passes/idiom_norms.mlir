// choices.5, choices.6: graphs that are recognized as normalizations, and near misses.
// RUN: %recognize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @llama_dynamo
// CHECK-SAME: attributes {plan.choices = ["rmsnorm-1"]}
// CHECK: %[[Y:.*]] = repro.rmsnorm %arg0, %w{{[0-9]+}} {epsilon = 9.99999997E-7 : f32
// CHECK-NEXT: return %[[Y]]
func.func @llama_dynamo(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v3 = onnx.node "ReduceMean"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c4 = onnx.weight "c4" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v5 = onnx.node "Add"(%v3, %c4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v6 = onnx.node "Sqrt"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Reciprocal"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "Mul"(%v7, %x) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w9 = onnx.weight "w9" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v10 = onnx.node "Mul"(%w9, %v8) {name = "v10", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v10 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @llama_legacy
// CHECK: %[[Y:.*]] = repro.rmsnorm %arg0, %w{{[0-9]+}} {epsilon = 9.99999997E-7 : f32
// CHECK-NEXT: return %[[Y]]
func.func @llama_legacy(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v3 = onnx.node "ReduceMean"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c4 = onnx.weight "c4" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v5 = onnx.node "Add"(%v3, %c4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v6 = onnx.node "Sqrt"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v8 = onnx.node "Div"(%c7, %v6) {name = "v8", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v9 = onnx.node "Mul"(%x, %v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %w10 = onnx.weight "w10" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v11 = onnx.node "Mul"(%w10, %v9) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v11 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @quotient
// CHECK: %[[Y:.*]] = repro.rmsnorm %arg0, %w{{[0-9]+}} {epsilon = 9.99999997E-7 : f32
// CHECK-NEXT: return %[[Y]]
func.func @quotient(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Div"(%x, %v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %w7 = onnx.weight "w7" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v8 = onnx.node "Mul"(%w7, %v6) {name = "v8", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @power
// CHECK: %[[Y:.*]] = repro.rmsnorm %arg0, %w{{[0-9]+}} {epsilon = 9.99999997E-7 : f32
// CHECK-NEXT: return %[[Y]]
func.func @power(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "000000bf"} : tensor<f32>
  %v6 = onnx.node "Pow"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%x, %v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @no_weight
// CHECK: %[[W:.*]] = repro.weight {{.*}}data = "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f"{{.*}} : tensor<8xf32>
// CHECK: repro.rmsnorm %arg0, %[[W]]
func.func @no_weight(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @unscaled_is_read
// CHECK: %[[Y:.*]] = repro.rmsnorm
// CHECK: %[[Z:.*]] = repro.mul
// CHECK-NEXT: return %[[Z]], %[[Y]]
func.func @unscaled_is_read(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9, %v7 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @scale_of_positions
// CHECK: %[[Y:.*]] = repro.rmsnorm
// CHECK: repro.mul %w{{[0-9]+}}, %[[Y]]
func.func @scale_of_positions(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<1x1x8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<1x1x8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_reader_q
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @other_reader_q(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9, %v0 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_reader_a
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @other_reader_a(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9, %v2 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_reader_s
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @other_reader_s(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9, %v4 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_reader_t
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @other_reader_t(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9, %v5 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @cube
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @cube(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00004040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v3 = onnx.node "ReduceMean"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c4 = onnx.weight "c4" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v5 = onnx.node "Add"(%v3, %c4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v6 = onnx.node "Sqrt"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Reciprocal"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "Mul"(%v7, %x) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w9 = onnx.weight "w9" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v10 = onnx.node "Mul"(%w9, %v8) {name = "v10", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v10 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @no_epsilon
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @no_epsilon(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v3 = onnx.node "Sqrt"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Reciprocal"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%v4, %x) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w6 = onnx.weight "w6" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v7 = onnx.node "Mul"(%w6, %v5) {name = "v7", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @middle_axis
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @middle_axis(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Reciprocal"(%v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %x) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w8 = onnx.weight "w8" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v9 = onnx.node "Mul"(%w8, %v7) {name = "v9", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v9 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @twice
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @twice(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v7 = onnx.node "Div"(%c6, %v5) {name = "v7", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "Mul"(%x, %v7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %w9 = onnx.weight "w9" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v10 = onnx.node "Mul"(%w9, %v8) {name = "v10", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v10 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @root_over_x
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
// CHECK-NOT: repro.rmsnorm
// CHECK: return
func.func @root_over_x(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %v0 = onnx.node "Mul"(%x, %x) {name = "v0", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c1 = onnx.weight "c1" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v2 = onnx.node "ReduceMean"(%v0, %c1) {name = "v2", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "bd378635"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Sqrt"(%v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v6 = onnx.node "Div"(%v5, %x) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %w7 = onnx.weight "w7" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v8 = onnx.node "Mul"(%w7, %v6) {name = "v8", domain = "", version = 23 : i64, params = {}} : (tensor<8xf32>, !onnx.unknown) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @layernorm
// CHECK-SAME: attributes {plan.choices = ["layernorm-1"]}
// CHECK-NOT: repro.reduce_mean
// CHECK: repro.layernorm %arg0, %w{{[0-9]+}}, %w{{[0-9]+}} {epsilon = 9.99999974E-6 : f32
// CHECK-NEXT: return
func.func @layernorm(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v1 = onnx.node "ReduceMean"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Sub"(%x, %v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v4 = onnx.node "Pow"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v6 = onnx.node "ReduceMean"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "acc52737"} : tensor<f32>
  %v8 = onnx.node "Add"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Sqrt"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "Div"(%v2, %v9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %w11 = onnx.weight "w11" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v12 = onnx.node "Mul"(%v10, %w11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  %w13 = onnx.weight "w13" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v14 = onnx.node "Add"(%v12, %w13) {name = "v14", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  return %v14 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @difference_twice
// CHECK: repro.layernorm %arg0, %w{{[0-9]+}}, %w
// CHECK-NEXT: return
func.func @difference_twice(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v1 = onnx.node "ReduceMean"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Sub"(%x, %v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Sub"(%x, %v1) {name = "v3", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c4 = onnx.weight "c4" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v5 = onnx.node "Pow"(%v3, %c4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v7 = onnx.node "ReduceMean"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "acc52737"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v10 = onnx.node "Sqrt"(%v9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v11 = onnx.node "Reciprocal"(%v10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v2, %v11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %w13 = onnx.weight "w13" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v14 = onnx.node "Mul"(%v12, %w13) {name = "v14", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  %w15 = onnx.weight "w15" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v16 = onnx.node "Add"(%v14, %w15) {name = "v16", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  return %v16 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @no_bias
// CHECK: repro.layernorm %arg0, %w{{[0-9]+}} {
// CHECK-NEXT: return
func.func @no_bias(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v1 = onnx.node "ReduceMean"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Sub"(%x, %v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v4 = onnx.node "Pow"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v6 = onnx.node "ReduceMean"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "acc52737"} : tensor<f32>
  %v8 = onnx.node "Add"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Sqrt"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "Div"(%v2, %v9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %w11 = onnx.weight "w11" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v12 = onnx.node "Mul"(%v10, %w11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @bias_alone
// CHECK: %[[W:.*]] = repro.weight {{.*}}data = "0000803f
// CHECK: repro.layernorm %arg0, %[[W]], %w{{[0-9]+}} {
// CHECK-NEXT: return
func.func @bias_alone(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v1 = onnx.node "ReduceMean"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Sub"(%x, %v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v4 = onnx.node "Pow"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v6 = onnx.node "ReduceMean"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "acc52737"} : tensor<f32>
  %v8 = onnx.node "Add"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Sqrt"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "Div"(%v2, %v9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %w11 = onnx.weight "w11" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v12 = onnx.node "Add"(%v10, %w11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @third_moment
// CHECK-NOT: repro.layernorm
// CHECK: repro.pow
func.func @third_moment(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v1 = onnx.node "ReduceMean"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Sub"(%x, %v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "00004040"} : tensor<f32>
  %v4 = onnx.node "Pow"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v6 = onnx.node "ReduceMean"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "acc52737"} : tensor<f32>
  %v8 = onnx.node "Add"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Sqrt"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "Div"(%v2, %v9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %w11 = onnx.weight "w11" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v12 = onnx.node "Mul"(%v10, %w11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  %w13 = onnx.weight "w13" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v14 = onnx.node "Add"(%v12, %w13) {name = "v14", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  return %v14 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_axes
// CHECK-NOT: repro.layernorm
// CHECK-NOT: repro.rmsnorm
// CHECK: repro.reduce_mean
func.func @other_axes(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %v1 = onnx.node "ReduceMean"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Sub"(%x, %v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v4 = onnx.node "Pow"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v6 = onnx.node "ReduceMean"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {keepdims = 1 : i64}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "acc52737"} : tensor<f32>
  %v8 = onnx.node "Add"(%v6, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v9 = onnx.node "Sqrt"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v10 = onnx.node "Div"(%v2, %v9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %w11 = onnx.weight "w11" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v12 = onnx.node "Mul"(%v10, %w11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  %w13 = onnx.weight "w13" {file = "f", offset = 0 : i64, length = 32 : i64} : tensor<8xf32>
  %v14 = onnx.node "Add"(%v12, %w13) {name = "v14", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<8xf32>) -> !onnx.unknown
  return %v14 : !onnx.unknown
}
