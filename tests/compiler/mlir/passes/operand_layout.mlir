// Transposes that fold into kernels, and equal operations that merge.
// RUN: %canonicalize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @products
func.func @products(%q: tensor<2x3x?x4xf32, ["", "", "n", ""]>, %k: tensor<2x3x?x4xf32, ["", "", "n", ""]>, %r: tensor<2x?x3x4xf32, ["", "n", "", ""]>) -> (tensor<2x3x?x?xf32, ["", "", "n", "n"]>, tensor<2x3x4x4xf32>, tensor<2x3x?x?xf32, ["", "", "n", "n"]>) {
  // CHECK-NEXT: repro.matmul %arg0, %arg1 {numerics = "fp32-1", trans_b = 1 : i64
  %0 = repro.transpose %k {numerics = "none", version = 1 : i64, perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x?x4xf32, ["", "", "n", ""]>) -> tensor<2x3x4x?xf32, ["", "", "", "n"]>
  %1 = repro.matmul %q, %0 {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<2x3x?x4xf32, ["", "", "n", ""]>, tensor<2x3x4x?xf32, ["", "", "", "n"]>) -> tensor<2x3x?x?xf32, ["", "", "n", "n"]>
  // CHECK-NEXT: repro.matmul %arg0, %arg1 {numerics = "fp32-1", trans_a = 1 : i64, trans_b = 0 : i64
  %2 = repro.transpose %q {numerics = "none", version = 1 : i64, perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x?x4xf32, ["", "", "n", ""]>) -> tensor<2x3x4x?xf32, ["", "", "", "n"]>
  %3 = repro.matmul %2, %k {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<2x3x4x?xf32, ["", "", "", "n"]>, tensor<2x3x?x4xf32, ["", "", "n", ""]>) -> tensor<2x3x4x4xf32>
  // The rest stays, with whole rows.
  // CHECK-NEXT: %[[T:.*]] = repro.transpose %arg2 {{.*}}perm = array<i64: 0, 2, 1, 3>
  // CHECK-NEXT: repro.matmul %arg0, %[[T]] {{.*}}trans_b = 1
  %4 = repro.transpose %r {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 3, 1>} : (tensor<2x?x3x4xf32, ["", "n", "", ""]>) -> tensor<2x3x4x?xf32, ["", "", "", "n"]>
  %5 = repro.matmul %q, %4 {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<2x3x?x4xf32, ["", "", "n", ""]>, tensor<2x3x4x?xf32, ["", "", "", "n"]>) -> tensor<2x3x?x?xf32, ["", "", "n", "n"]>
  return %1, %3, %5 : tensor<2x3x?x?xf32, ["", "", "n", "n"]>, tensor<2x3x4x4xf32>, tensor<2x3x?x?xf32, ["", "", "n", "n"]>
}

// -----

// Batches are not what a kernel exchanges.
// CHECK-LABEL: func.func @batches
func.func @batches(%a: tensor<3x2x4x4xf32>, %b: tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> {
  // CHECK-NEXT: %[[T:.*]] = repro.transpose %arg0
  // CHECK-NEXT: repro.matmul %[[T]], %arg1 {numerics = "fp32-1", trans_b = 0
  %0 = repro.transpose %a {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0, 2, 3>} : (tensor<3x2x4x4xf32>) -> tensor<2x3x4x4xf32>
  %1 = repro.matmul %0, %b {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  return %1 : tensor<2x3x4x4xf32>
}

// -----

// CHECK-LABEL: func.func @heads
func.func @heads(%q: tensor<?x?x6x4xf32, ["b", "n", "", ""]>, %k: tensor<?x?x2x4xf32, ["b", "n", "", ""]>, %v: tensor<?x?x2x5xf32, ["b", "n", "", ""]>) -> tensor<?x?x30xf32, ["b", "n", ""]> {
  // CHECK-NEXT: %[[Q:.*]] = repro.reshape %arg0 {{.*}} -> tensor<?x?x24xf32
  // CHECK-NEXT: %[[K:.*]] = repro.reshape %arg1 {{.*}} -> tensor<?x?x8xf32
  // CHECK-NEXT: %[[V:.*]] = repro.reshape %arg2 {{.*}} -> tensor<?x?x10xf32
  // CHECK-NEXT: %[[A:.*]] = repro.attention %[[Q]], %[[K]], %[[V]] {causal = 1 : i64, kv_heads = 2 : i64, numerics = "attention-1", q_heads = 6 : i64, scale = 5.000000e-01 : f32, version = 1 : i64} {{.*}} -> tensor<?x?x30xf32
  // CHECK-NEXT: return %[[A]]
  %0 = repro.transpose %q {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x6x4xf32, ["b", "n", "", ""]>) -> tensor<?x6x?x4xf32, ["b", "", "n", ""]>
  %1 = repro.transpose %k {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "n", "", ""]>) -> tensor<?x2x?x4xf32, ["b", "", "n", ""]>
  %2 = repro.transpose %v {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x5xf32, ["b", "n", "", ""]>) -> tensor<?x2x?x5xf32, ["b", "", "n", ""]>
  %3 = repro.attention %0, %1, %2 {numerics = "attention-1", version = 1 : i64, causal = 1 : i64, heads_first = 1 : i64, q_heads = 6 : i64, kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<?x6x?x4xf32, ["b", "", "n", ""]>, tensor<?x2x?x4xf32, ["b", "", "n", ""]>, tensor<?x2x?x5xf32, ["b", "", "n", ""]>) -> tensor<?x6x?x5xf32, ["b", "", "n", ""]>
  %4 = repro.transpose %3 {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 1, 3>} : (tensor<?x6x?x5xf32, ["b", "", "n", ""]>) -> tensor<?x?x6x5xf32, ["b", "n", "", ""]>
  %5 = repro.reshape %4 {numerics = "none", version = 1 : i64} : (tensor<?x?x6x5xf32, ["b", "n", "", ""]>) -> tensor<?x?x30xf32, ["b", "n", ""]>
  return %5 : tensor<?x?x30xf32, ["b", "n", ""]>
}

// -----

// Equal operations are one; others, and those with memory, are not.
// CHECK-LABEL: func.func @equal
func.func @equal(%x: tensor<?x?x8xf32, ["b", "n", ""]>) -> (tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>) {
  // CHECK-NEXT: %[[R:.*]] = repro.relu %arg0
  // CHECK-NEXT: %[[A:.*]] = repro.attention %[[R]], %[[R]], %[[R]] {{.*}}state = "s"
  // CHECK-NEXT: %[[B:.*]] = repro.attention %[[R]], %[[R]], %[[R]] {{.*}}state = "s"
  // CHECK-NEXT: %[[C:.*]] = repro.attention %[[R]], %[[R]], %[[R]] {causal = 0
  // CHECK-NEXT: %[[D:.*]] = repro.attention %[[R]], %[[R]], %[[R]] {causal = 1
  // CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[C]], %[[D]]
  %0 = repro.relu %x {numerics = "ieee", version = 1 : i64} : (tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  %1 = repro.relu %x {numerics = "ieee", version = 1 : i64} : (tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  %2 = repro.attention %0, %1, %0 {numerics = "attention-1", version = 1 : i64, causal = 0 : i64, state = "s", q_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  %3 = repro.attention %0, %0, %1 {numerics = "attention-1", version = 1 : i64, causal = 0 : i64, state = "s", q_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  %4 = repro.attention %0, %1, %1 {numerics = "attention-1", version = 1 : i64, causal = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  %5 = repro.attention %1, %1, %1 {numerics = "attention-1", version = 1 : i64, causal = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  %6 = repro.attention %1, %0, %0 {numerics = "attention-1", version = 1 : i64, causal = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>) -> tensor<?x?x8xf32, ["b", "n", ""]>
  return %2, %3, %4, %5, %6 : tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>, tensor<?x?x8xf32, ["b", "n", ""]>
}
