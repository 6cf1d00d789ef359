// choices.9: graphs that are recognized as rotary embeddings, and near misses.
// RUN: %recognize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @rope
// CHECK-SAME: attributes {plan.choices = ["rope-1"]}
// CHECK: %[[F:.*]] = repro.mul %arg1
// CHECK-NEXT: %[[C:.*]] = repro.cos %[[F]]
// CHECK-NEXT: %[[S:.*]] = repro.sin %[[F]]
// CHECK-NEXT: %[[Y:.*]] = repro.rope %arg0, %[[C]], %[[S]] {heads_first = 1 : i64, interleaved = 0 : i64, num_heads = 4 : i64, numerics = "ieee", rotary_dim = 0 : i64
// CHECK-NEXT: return %[[Y]]
func.func @rope(%x: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %p: tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803fcdcccc3d0ad7233c6f12833a"} : tensor<4xf32>
  %v1 = onnx.node "Mul"(%p, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  %v2 = onnx.node "Concat"(%v1, %v1) {name = "v2", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Cos"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Sin"(%v2) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v6 = onnx.node "Unsqueeze"(%v3, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v7 = onnx.node "Unsqueeze"(%v4, %c5) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v12 = onnx.node "Slice"(%x, %c8, %c9, %c10, %c11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c13 = onnx.weight "c13" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c16 = onnx.weight "c16" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v17 = onnx.node "Slice"(%x, %c13, %c14, %c15, %c16) {name = "v17", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v18 = onnx.node "Neg"(%v17) {name = "v18", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v19 = onnx.node "Concat"(%v18, %v12) {name = "v19", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v20 = onnx.node "Mul"(%x, %v6) {name = "v20", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Mul"(%v19, %v7) {name = "v21", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v22 = onnx.node "Add"(%v20, %v21) {name = "v22", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v22 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @scaled
// CHECK-DAG: %[[C0:.*]] = repro.cos
// CHECK-DAG: %[[C:.*]] = repro.mul %[[C0]]
// CHECK-DAG: %[[S0:.*]] = repro.sin
// CHECK-DAG: %[[S:.*]] = repro.mul %[[S0]]
// CHECK: repro.rope %arg0, %[[C]], %[[S]]
func.func @scaled(%x: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %p: tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803fcdcccc3d0ad7233c6f12833a"} : tensor<4xf32>
  %v1 = onnx.node "Mul"(%p, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  %v2 = onnx.node "Concat"(%v1, %v1) {name = "v2", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Cos"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Sin"(%v2) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v6 = onnx.node "Mul"(%v3, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c7 = onnx.weight "c7" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %v8 = onnx.node "Mul"(%v4, %c7) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<f32>) -> !onnx.unknown
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v10 = onnx.node "Unsqueeze"(%v6, %c9) {name = "v10", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v11 = onnx.node "Unsqueeze"(%v8, %c9) {name = "v11", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c12 = onnx.weight "c12" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c13 = onnx.weight "c13" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v16 = onnx.node "Slice"(%x, %c12, %c13, %c14, %c15) {name = "v16", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c17 = onnx.weight "c17" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c18 = onnx.weight "c18" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %c19 = onnx.weight "c19" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c20 = onnx.weight "c20" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v21 = onnx.node "Slice"(%x, %c17, %c18, %c19, %c20) {name = "v21", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v22 = onnx.node "Neg"(%v21) {name = "v22", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v23 = onnx.node "Concat"(%v22, %v16) {name = "v23", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v24 = onnx.node "Mul"(%x, %v10) {name = "v24", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v25 = onnx.node "Mul"(%v23, %v11) {name = "v25", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v26 = onnx.node "Add"(%v24, %v25) {name = "v26", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v26 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @one_batch
// CHECK: %[[C0:.*]] = repro.cos
// CHECK: %[[C:.*]] = repro.expand %[[C0]] {{.*}} -> tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>
// CHECK: repro.rope %arg0, %[[C]], %{{.*}}
func.func @one_batch(%x: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %p: tensor<1x?x1xf32, #repro.dims<"", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803fcdcccc3d0ad7233c6f12833a"} : tensor<4xf32>
  %v1 = onnx.node "Mul"(%p, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<1x?x1xf32, #repro.dims<"", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  %v2 = onnx.node "Concat"(%v1, %v1) {name = "v2", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Cos"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Sin"(%v2) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v6 = onnx.node "Unsqueeze"(%v3, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v7 = onnx.node "Unsqueeze"(%v4, %c5) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v12 = onnx.node "Slice"(%x, %c8, %c9, %c10, %c11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c13 = onnx.weight "c13" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c16 = onnx.weight "c16" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v17 = onnx.node "Slice"(%x, %c13, %c14, %c15, %c16) {name = "v17", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v18 = onnx.node "Neg"(%v17) {name = "v18", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v19 = onnx.node "Concat"(%v18, %v12) {name = "v19", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v20 = onnx.node "Mul"(%x, %v6) {name = "v20", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Mul"(%v19, %v7) {name = "v21", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v22 = onnx.node "Add"(%v20, %v21) {name = "v22", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v22 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @the_other_way
// CHECK-NOT: repro.rope
// CHECK: repro.concat
// CHECK-NOT: repro.rope
// CHECK: return
func.func @the_other_way(%x: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %p: tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803fcdcccc3d0ad7233c6f12833a"} : tensor<4xf32>
  %v1 = onnx.node "Mul"(%p, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  %v2 = onnx.node "Concat"(%v1, %v1) {name = "v2", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Cos"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Sin"(%v2) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v6 = onnx.node "Unsqueeze"(%v3, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v7 = onnx.node "Unsqueeze"(%v4, %c5) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v12 = onnx.node "Slice"(%x, %c8, %c9, %c10, %c11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c13 = onnx.weight "c13" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c16 = onnx.weight "c16" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v17 = onnx.node "Slice"(%x, %c13, %c14, %c15, %c16) {name = "v17", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v18 = onnx.node "Neg"(%v12) {name = "v18", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v19 = onnx.node "Concat"(%v17, %v18) {name = "v19", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v20 = onnx.node "Mul"(%x, %v6) {name = "v20", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Mul"(%v19, %v7) {name = "v21", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v22 = onnx.node "Add"(%v20, %v21) {name = "v22", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v22 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @rotated_is_read
// CHECK-NOT: repro.rope
// CHECK: repro.concat
// CHECK-NOT: repro.rope
// CHECK: return
func.func @rotated_is_read(%x: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %p: tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803fcdcccc3d0ad7233c6f12833a"} : tensor<4xf32>
  %v1 = onnx.node "Mul"(%p, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  %v2 = onnx.node "Concat"(%v1, %v1) {name = "v2", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Cos"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Sin"(%v2) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c5 = onnx.weight "c5" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v6 = onnx.node "Unsqueeze"(%v3, %c5) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v7 = onnx.node "Unsqueeze"(%v4, %c5) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c8 = onnx.weight "c8" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v12 = onnx.node "Slice"(%x, %c8, %c9, %c10, %c11) {name = "v12", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c13 = onnx.weight "c13" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c16 = onnx.weight "c16" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v17 = onnx.node "Slice"(%x, %c13, %c14, %c15, %c16) {name = "v17", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v18 = onnx.node "Neg"(%v17) {name = "v18", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v19 = onnx.node "Concat"(%v18, %v12) {name = "v19", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v20 = onnx.node "Mul"(%x, %v6) {name = "v20", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Mul"(%v19, %v7) {name = "v21", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v22 = onnx.node "Add"(%v20, %v21) {name = "v22", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v22, %v19 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @angles_not_equal
// CHECK-NOT: repro.rope
// CHECK: repro.concat
// CHECK-NOT: repro.rope
// CHECK: return
func.func @angles_not_equal(%x: tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, %p: tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown) {
  %c0 = onnx.weight "c0" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803fcdcccc3d0ad7233c6f12833a"} : tensor<4xf32>
  %v1 = onnx.node "Mul"(%p, %c0) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  %v2 = onnx.node "Neg"(%v1) {name = "v2", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v3 = onnx.node "Concat"(%v1, %v2) {name = "v3", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Cos"(%v3) {name = "v4", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "Sin"(%v3) {name = "v5", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %c6 = onnx.weight "c6" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v7 = onnx.node "Unsqueeze"(%v4, %c6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %v8 = onnx.node "Unsqueeze"(%v5, %c6) {name = "v8", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  %c9 = onnx.weight "c9" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %c10 = onnx.weight "c10" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c11 = onnx.weight "c11" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c12 = onnx.weight "c12" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v13 = onnx.node "Slice"(%x, %c9, %c10, %c11, %c12) {name = "v13", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %c14 = onnx.weight "c14" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %c15 = onnx.weight "c15" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffff7f"} : tensor<1xi64>
  %c16 = onnx.weight "c16" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %c17 = onnx.weight "c17" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  %v18 = onnx.node "Slice"(%x, %c14, %c15, %c16, %c17) {name = "v18", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v19 = onnx.node "Neg"(%v18) {name = "v19", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v20 = onnx.node "Concat"(%v19, %v13) {name = "v20", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v21 = onnx.node "Mul"(%x, %v7) {name = "v21", domain = "", version = 23 : i64, params = {}} : (tensor<?x4x?x8xf32, #repro.dims<"batch", "", "seq", "">>, !onnx.unknown) -> !onnx.unknown
  %v22 = onnx.node "Mul"(%v20, %v8) {name = "v22", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v23 = onnx.node "Add"(%v21, %v22) {name = "v23", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v23 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @constants
// CHECK-SAME: attributes {plan.choices = ["rope-1"]}
// CHECK-DAG: repro.weight {{.*}}data = "0000003f0000003e"{{.*}} : tensor<1x1x2xf32>
// CHECK-DAG: repro.weight {{.*}}data = "0000803e000080bf"{{.*}} : tensor<1x1x2xf32>
// CHECK: repro.rope %arg0, {{.*}} {heads_first = 1 : i64, interleaved = 0 : i64, num_heads = 4 : i64, numerics = "ieee", rotary_dim = 0 : i64
func.func @constants(%x: tensor<2x4x1x4xf32>) -> (!onnx.unknown) {
  %c = onnx.weight "c" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000003f0000003e0000003f0000003e"} : tensor<1x1x1x4xf32>
  %n = onnx.weight "n" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803e000080bf0000803e000080bf"} : tensor<1x1x1x4xf32>
  %zero = onnx.weight "zero" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %four = onnx.weight "four" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %axis = onnx.weight "axis" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %v1 = onnx.node "Slice"(%x, %zero, %two, %axis) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<2x4x1x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Slice"(%x, %two, %four, %axis) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<2x4x1x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v3 = onnx.node "Neg"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Concat"(%v3, %v1) {name = "v4", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %c) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<2x4x1x4xf32>, tensor<1x1x1x4xf32>) -> !onnx.unknown
  %v6 = onnx.node "Mul"(%v4, %n) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1x1x1x4xf32>) -> !onnx.unknown
  %v7 = onnx.node "Add"(%v5, %v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v7 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @constants_not_equal
// CHECK-NOT: repro.rope
func.func @constants_not_equal(%x: tensor<2x4x1x4xf32>) -> (!onnx.unknown) {
  %c = onnx.weight "c" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000003f0000003e0000003f0000003e"} : tensor<1x1x1x4xf32>
  %n = onnx.weight "n" {file = "", offset = 0 : i64, length = 16 : i64, data = "0000803e000080bf0000803e000080be"} : tensor<1x1x1x4xf32>
  %zero = onnx.weight "zero" {file = "", offset = 0 : i64, length = 8 : i64, data = "0000000000000000"} : tensor<1xi64>
  %two = onnx.weight "two" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  %four = onnx.weight "four" {file = "", offset = 0 : i64, length = 8 : i64, data = "0400000000000000"} : tensor<1xi64>
  %axis = onnx.weight "axis" {file = "", offset = 0 : i64, length = 8 : i64, data = "0300000000000000"} : tensor<1xi64>
  %v1 = onnx.node "Slice"(%x, %zero, %two, %axis) {name = "v1", domain = "", version = 23 : i64, params = {}} : (tensor<2x4x1x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v2 = onnx.node "Slice"(%x, %two, %four, %axis) {name = "v2", domain = "", version = 23 : i64, params = {}} : (tensor<2x4x1x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.unknown
  %v3 = onnx.node "Neg"(%v2) {name = "v3", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %v4 = onnx.node "Concat"(%v3, %v1) {name = "v4", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %v5 = onnx.node "Mul"(%x, %c) {name = "v5", domain = "", version = 23 : i64, params = {}} : (tensor<2x4x1x4xf32>, tensor<1x1x1x4xf32>) -> !onnx.unknown
  %v6 = onnx.node "Mul"(%v4, %n) {name = "v6", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1x1x1x4xf32>) -> !onnx.unknown
  %v7 = onnx.node "Add"(%v5, %v6) {name = "v7", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %v7 : !onnx.unknown
}
