// Elements are quantized before they move. What was dequantized by the same scale is still there.
// RUN: %canonicalize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @moved
func.func @moved(%x: tensor<1x2x3x3xf32>, %y: tensor<1x2x3x3xf32>) -> tensor<1x3x3x4xui8> {
  %s = repro.weight "s" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %z = repro.weight "z" {file = "", offset = 0 : i64, length = 1 : i64, data = "07"} : tensor<ui8>
  // CHECK-DAG: %[[X:.*]] = repro.quantize_linear %arg0, %s, %z {{.*}} -> tensor<1x2x3x3xui8>
  // CHECK-DAG: %[[Y:.*]] = repro.quantize_linear %arg1, %s, %z {{.*}} -> tensor<1x2x3x3xui8>
  // CHECK: %[[C:.*]] = repro.concat %[[X]], %[[Y]] {axis = 1 : i64{{.*}} -> tensor<1x4x3x3xui8>
  // CHECK-NEXT: %[[T:.*]] = repro.transpose %[[C]] {{.*}} -> tensor<1x3x3x4xui8>
  // CHECK-NEXT: return %[[T]]
  %0 = repro.concat %x, %y {numerics = "none", version = 1 : i64, axis = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  %1 = repro.transpose %0 {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 3, 1>} : (tensor<1x4x3x3xf32>) -> tensor<1x3x3x4xf32>
  %2 = repro.quantize_linear %1, %s, %z {numerics = "ieee", version = 1 : i64, axis = 1 : i64, block = 0 : i64} : (tensor<1x3x3x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x3x3x4xui8>
  return %2 : tensor<1x3x3x4xui8>
}

// -----

// CHECK-LABEL: func.func @restored
func.func @restored(%q: tensor<2x3x4xui8>, %r: tensor<2x3x4xui8>) -> (tensor<2x12xui8>, tensor<2x3x4xui8>) {
  %s = repro.weight "s" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000003f"} : tensor<f32>
  %t = repro.weight "t" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  %z = repro.weight "z" {file = "", offset = 0 : i64, length = 1 : i64, data = "07"} : tensor<ui8>
  // CHECK-DAG: %[[Q:.*]] = repro.reshape %arg0 {{.*}} -> tensor<2x12xui8>
  // CHECK-DAG: %[[D:.*]] = repro.dequantize_linear %arg1, %s, %z
  // CHECK: %[[R:.*]] = repro.quantize_linear %[[D]], %t, %z
  // CHECK-NEXT: return %[[Q]], %[[R]]
  %0 = repro.dequantize_linear %q, %s, %z {numerics = "ieee", version = 1 : i64, axis = 1 : i64, block = 0 : i64} : (tensor<2x3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x4xf32>
  %1 = repro.reshape %0 {numerics = "none", version = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %2 = repro.quantize_linear %1, %s, %z {numerics = "ieee", version = 1 : i64, axis = 1 : i64, block = 0 : i64} : (tensor<2x12xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x12xui8>
  // Another scale.
  %3 = repro.dequantize_linear %r, %s, %z {numerics = "ieee", version = 1 : i64, axis = 1 : i64, block = 0 : i64} : (tensor<2x3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x4xf32>
  %4 = repro.quantize_linear %3, %t, %z {numerics = "ieee", version = 1 : i64, axis = 1 : i64, block = 0 : i64} : (tensor<2x3x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x3x4xui8>
  return %2, %4 : tensor<2x12xui8>, tensor<2x3x4xui8>
}
