// Casts and transposes fold into weights, x * sigmoid(x) is fused, and dead code disappears.
// RUN: %fold "%s" --split-input-file | %check

// CHECK-LABEL: func.func @weights
func.func @weights(%x: tensor<?x4xf32, ["seq", ""]>, %ids: tensor<?xi64, ["seq"]>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK-NEXT: %w = repro.weight "w" {file = "f", length = 64 : i64, offset = 0 : i64} : tensor<8x4xbf16>
  // CHECK-NOT: repro.weight
  // CHECK-NOT: repro.cast
  %w = onnx.weight "w" {file = "f", offset = 0 : i64, length = 64 : i64} : tensor<8x4xbf16>
  %dead = onnx.weight "dead" {file = "f", offset = 64 : i64, length = 64 : i64} : tensor<8x4xbf16>
  %wide = onnx.node "Cast"(%w) {name = "a", domain = "", version = 23 : i64, params = {to = 1 : i64}} : (tensor<8x4xbf16>) -> !onnx.unknown
  %wide_t = onnx.node "Transpose"(%wide) {name = "b", domain = "", version = 23 : i64, params = {perm = array<i64: 1, 0>}} : (!onnx.unknown) -> !onnx.unknown
  %t = onnx.node "Transpose"(%w) {name = "c", domain = "", version = 23 : i64, params = {}} : (tensor<8x4xbf16>) -> !onnx.unknown
  %t_wide = onnx.node "Cast"(%t) {name = "d", domain = "", version = 23 : i64, params = {to = 1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.matmul %arg0, %w {numerics = "fp32-1", trans_b = 1 : i64, version = 1 : i64} : (tensor<?x4xf32, ["seq", ""]>, tensor<8x4xbf16>) -> tensor<?x8xf32, ["seq", ""]>
  // CHECK: repro.matmul %arg0, %w {{.*}}trans_b = 1
  // CHECK: repro.gather %w, %arg1
  %y = onnx.node "MatMul"(%x, %wide_t) {name = "e", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>, !onnx.unknown) -> !onnx.unknown
  %z = onnx.node "MatMul"(%x, %t_wide) {name = "f", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>, !onnx.unknown) -> !onnx.unknown
  %rows = onnx.node "Gather"(%wide, %ids) {name = "g", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?xi64, ["seq"]>) -> !onnx.unknown
  // Twice transposed is as it was.
  %tt = onnx.node "Transpose"(%t_wide) {name = "h", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.gather %w, %arg1
  %again = onnx.node "Gather"(%tt, %ids) {name = "i", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?xi64, ["seq"]>) -> !onnx.unknown
  %unused = onnx.node "Sin"(%x) {name = "j", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  // CHECK-NOT: repro.sin
  // CHECK: return
  return %y, %z, %rows, %again : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// A kernel that does not widen keeps the conversion: the sine of a bf16 constant.
// CHECK-LABEL: func.func @kept
func.func @kept() -> !onnx.unknown {
  %w = onnx.weight "w" {file = "f", offset = 0 : i64, length = 8 : i64} : tensor<4xbf16>
  // CHECK: %[[C:.*]] = repro.cast %w {{.*}} : (tensor<4xbf16>) -> tensor<4xf32>
  %c = onnx.node "Cast"(%w) {name = "a", domain = "", version = 23 : i64, params = {to = 1 : i64}} : (tensor<4xbf16>) -> !onnx.unknown
  // CHECK: repro.sin %[[C]]
  %s = onnx.node "Sin"(%c) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  return %s : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @scaled_gate
func.func @scaled_gate(%x: tensor<?x4xf32, ["seq", ""]>) -> (!onnx.unknown, !onnx.unknown) {
  %a = onnx.weight "a" {file = "", offset = 0 : i64, length = 4 : i64, data = "23dbd93f"} : tensor<f32>
  %m = onnx.node "Mul"(%x, %a) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>, tensor<f32>) -> !onnx.unknown
  %s = onnx.node "Sigmoid"(%m) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.swish %arg0 {alpha = 1.702000e+00 : f32
  %g = onnx.node "Mul"(%s, %x) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  // Of another product: no fusion.
  // CHECK: %[[M:.*]] = repro.mul %arg0, %arg0
  // CHECK: %[[S:.*]] = repro.sigmoid %[[M]]
  // CHECK: repro.mul %[[S]], %arg0
  %m2 = onnx.node "Mul"(%x, %x) {name = "d", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>, tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  %s2 = onnx.node "Sigmoid"(%m2) {name = "e", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %g2 = onnx.node "Mul"(%s2, %x) {name = "f", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  return %g, %g2 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @gate
func.func @gate(%x: tensor<?x4xf32, ["seq", ""]>, %z: tensor<?x4xf32, ["seq", ""]>) -> (!onnx.unknown, !onnx.unknown) {
  %s = onnx.node "Sigmoid"(%x) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  // CHECK-NEXT: repro.silu %arg0 {numerics = "graph-1"
  %g = onnx.node "Mul"(%s, %x) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  // Another factor: no fusion.
  // CHECK-NEXT: %[[S:.*]] = repro.sigmoid %arg1
  // CHECK-NEXT: repro.mul %[[S]], %arg0
  %s2 = onnx.node "Sigmoid"(%z) {name = "c", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  %g2 = onnx.node "Mul"(%s2, %x) {name = "d", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<?x4xf32, ["seq", ""]>) -> !onnx.unknown
  return %g, %g2 : !onnx.unknown, !onnx.unknown
}

// -----

// A transposed weight that something else reads is turned at run time, and widened where a kernel would have done it.
// CHECK-LABEL: func.func @turned
func.func @turned(%x: tensor<4x8xf32>) -> (!onnx.unknown, !onnx.unknown) {
  %w = onnx.weight "w" {file = "f", offset = 0 : i64, length = 64 : i64} : tensor<8x4xbf16>
  %t = onnx.node "Transpose"(%w) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<8x4xbf16>) -> !onnx.unknown
  %wide = onnx.node "Cast"(%t) {name = "b", domain = "", version = 23 : i64, params = {to = 1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: %[[T:.*]] = repro.transpose %w {numerics = "none", perm = array<i64: 1, 0>, version = 1 : i64} : (tensor<8x4xbf16>) -> tensor<4x8xbf16>
  // CHECK: %[[C:.*]] = repro.cast %[[T]] {{.*}} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  // CHECK: repro.add %arg0, %[[C]]
  %y = onnx.node "Add"(%x, %wide) {name = "c", domain = "", version = 23 : i64, params = {}} : (tensor<4x8xf32>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.matmul %arg0, %w {{.*}}trans_b = 0
  %u = onnx.node "Transpose"(%wide) {name = "d", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %z = onnx.node "MatMul"(%x, %u) {name = "e", domain = "", version = 23 : i64, params = {}} : (tensor<4x8xf32>, !onnx.unknown) -> !onnx.unknown
  return %y, %z : !onnx.unknown, !onnx.unknown
}

// -----

// Attention of heads that were turned to the front, and back behind it, turns nothing: attention.1, rope.6.
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<2x?x32xf32, ["", "seq", ""]>, %c: tensor<2x?x4xf32, ["", "seq", ""]>) -> (!onnx.unknown) {
  %s = onnx.weight "s" {file = "", offset = 0 : i64, length = 32 : i64, data = "0000000000000000000000000000000004000000000000000800000000000000"} : tensor<4xi64>
  %f = onnx.weight "f" {file = "", offset = 0 : i64, length = 24 : i64, data = "000000000000000000000000000000002000000000000000"} : tensor<3xi64>
  %h = onnx.node "Reshape"(%x, %s) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<2x?x32xf32, ["", "seq", ""]>, tensor<4xi64>) -> !onnx.unknown
  %q = onnx.node "Transpose"(%h) {name = "b", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 1, 3>}} : (!onnx.unknown) -> !onnx.unknown
  %k = onnx.node "Transpose"(%h) {name = "c", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 1, 3>}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK-NEXT: %[[Q:.*]] = repro.rope %arg0, %arg1, %arg1 {interleaved = 0 : i64, num_heads = 4 : i64
  %r = onnx.node "RotaryEmbedding"(%q, %c, %c) {name = "d", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<2x?x4xf32, ["", "seq", ""]>, tensor<2x?x4xf32, ["", "seq", ""]>) -> !onnx.unknown
  // CHECK-NEXT: %[[Y:.*]] = repro.attention %[[Q]], %arg0, %arg0 {causal = 0 : i64, kv_heads = 4 : i64
  %y = onnx.node "Attention"(%r, %k, %k) {name = "e", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown, !onnx.unknown) -> !onnx.unknown
  %b = onnx.node "Transpose"(%y) {name = "f", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 1, 3>}} : (!onnx.unknown) -> !onnx.unknown
  %o = onnx.node "Reshape"(%b, %f) {name = "g", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<3xi64>) -> !onnx.unknown
  // CHECK-NEXT: return %[[Y]]
  return %o : !onnx.unknown
}

// -----

// What is not turned back stays in front.
// CHECK-LABEL: func.func @heads_in_front
func.func @heads_in_front(%x: tensor<2x?x4x8xf32, ["", "seq", "", ""]>) -> (!onnx.unknown) {
  %q = onnx.node "Transpose"(%x) {name = "b", domain = "", version = 23 : i64, params = {perm = array<i64: 0, 2, 1, 3>}} : (tensor<2x?x4x8xf32, ["", "seq", "", ""]>) -> !onnx.unknown
  // CHECK: repro.attention {{.*}} heads_first = 1 : i64
  %y = onnx.node "Attention"(%q, %q, %q) {name = "e", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, !onnx.unknown, !onnx.unknown) -> !onnx.unknown
  return %y : !onnx.unknown
}
