// choices.7, choices.8: graphs that are recognized as GELU, and near misses.
// RUN: %recognize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @erf_torch
// CHECK-SAME: attributes {plan.choices = ["gelu-erf-1"]}
// CHECK-NEXT: %[[Y:.*]] = repro.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @erf_torch(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @erf_mul
// CHECK-NEXT: %[[Y:.*]] = repro.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @erf_mul(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304353f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%x, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v6, %v4) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @erf_inner
// CHECK-NEXT: %[[Y:.*]] = repro.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @erf_inner(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304353f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%x, %v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @erf_tail
// CHECK-NEXT: %[[Y:.*]] = repro.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @erf_tail(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%v4, %x) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v7 = onnx.node "Div"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @erf_square
// CHECK: %[[Y:.*]] = repro.gelu %arg0
// CHECK-NEXT: repro.mul %[[Y]], %arg0
func.func @erf_square(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304353f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v8 = onnx.node "Mul"(%v7, %x) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  return %v8 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_root
// CHECK-NOT: repro.gelu
// CHECK: repro.erf
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @other_root(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "8104b53f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @quotient_of_inverse
// CHECK-NOT: repro.gelu
// CHECK: repro.erf
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @quotient_of_inverse(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304353f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @no_half
// CHECK-NOT: repro.gelu
// CHECK: repro.erf
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @no_half(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304353f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  return %v5 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @third
// CHECK-NOT: repro.gelu
// CHECK: repro.erf
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @third(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "abaaaa3e"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @read_elsewhere
// CHECK-NOT: repro.gelu
// CHECK: repro.erf
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @read_elsewhere(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7, %v2 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @plus_two
// CHECK-NOT: repro.gelu
// CHECK: repro.erf
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @plus_two(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "f304b53f"} : tensor<f32>
  %v1 = onnx.node "Div"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v2 = onnx.node "Erf"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v4 = onnx.node "Add"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %v4) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v7 = onnx.node "Mul"(%v5, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @tanh_gpt2
// CHECK-SAME: attributes {plan.choices = ["gelu-tanh-1"]}
// CHECK-NEXT: %[[Y:.*]] = repro.gelu_tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @tanh_gpt2(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00004040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Add"(%x, %v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Tanh"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v11 = onnx.node "Mul"(%x, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v11, %v9) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @tanh_products
// CHECK-NEXT: %[[Y:.*]] = repro.gelu_tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @tanh_products(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %x) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v2 = onnx.node "Mul"(%v1, %x) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v4 = onnx.node "Mul"(%v2, %c3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v5 = onnx.node "Add"(%v4, %x) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v6 = onnx.node "Mul"(%c0, %v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Tanh"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v11 = onnx.node "Mul"(%x, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v11, %v9) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @tanh_fast
// CHECK-NEXT: %[[Y:.*]] = repro.gelu_tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @tanh_fast(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v4 = onnx.node "Mul"(%c3, %x) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%v4, %x) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v6 = onnx.node "Add"(%c2, %v5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v7 = onnx.node "Mul"(%v1, %v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "Tanh"(%v7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v10 = onnx.node "Add"(%v8, %c9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v12 = onnx.node "Mul"(%x, %c11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v13 = onnx.node "Mul"(%v12, %v10) {name = "v13", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v13 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @square_instead
// CHECK-NOT: repro.gelu
// CHECK: repro.tanh
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @square_instead(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Add"(%x, %v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Tanh"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v11 = onnx.node "Mul"(%x, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v11, %v9) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @cube_too_many
// CHECK-NOT: repro.gelu
// CHECK: repro.tanh
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @cube_too_many(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v1 = onnx.node "Mul"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %c3 = onnx.weight "c3" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v4 = onnx.node "Mul"(%c3, %x) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%v4, %x) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v6 = onnx.node "Mul"(%v5, %x) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %v7 = onnx.node "Add"(%c2, %v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (tensor<f32>, !onnx.unknown) -> !onnx.unknown
  %v8 = onnx.node "Mul"(%v1, %v7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v9 = onnx.node "Tanh"(%v8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v11 = onnx.node "Add"(%v9, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c12 = onnx.weight "c12" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v13 = onnx.node "Mul"(%x, %c12) {name = "v13", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v14 = onnx.node "Mul"(%v13, %v11) {name = "v14", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v14 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @other_factor
// CHECK-NOT: repro.gelu
// CHECK: repro.tanh
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @other_factor(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00004040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "5917373d"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Add"(%x, %v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Tanh"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v11 = onnx.node "Mul"(%x, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v11, %v9) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @rounded_root
// CHECK-NOT: repro.gelu
// CHECK: repro.tanh
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @rounded_root(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00004040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Add"(%x, %v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "2d434c3f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Tanh"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v11 = onnx.node "Mul"(%x, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v11, %v9) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v12 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @gate_is_read
// CHECK-NOT: repro.gelu
// CHECK: repro.tanh
// CHECK-NOT: repro.gelu
// CHECK: return
func.func @gate_is_read(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 4 : i64, data = "00004040"} : tensor<f32>
  %v1 = onnx.node "Pow"(%x, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %c2 = onnx.weight "c2" {file = "", offset = 0 : i64, length = 4 : i64, data = "1327373d"} : tensor<f32>
  %v3 = onnx.node "Mul"(%v1, %c2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v4 = onnx.node "Add"(%x, %v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "2a424c3f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v4, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %v7 = onnx.node "Tanh"(%v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %v9 = onnx.node "Add"(%v7, %c8) {name = "v9", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v11 = onnx.node "Mul"(%x, %c10) {name = "v11", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<f32>) -> !onnx.unknown
  %v12 = onnx.node "Mul"(%v11, %v9) {name = "v12", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v12, %v9 : !onnx.unknown, !onnx.unknown
}
