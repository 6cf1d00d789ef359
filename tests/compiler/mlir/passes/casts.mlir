// A cast of a losslessly widened value reads the original, except where the intermediate type changes values.
// RUN: %canonicalize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @merged
func.func @merged(%b: tensor<4xbf16>, %i: tensor<4xi8>, %t: tensor<4xi1>, %k: tensor<4xi32>) -> (tensor<4xf64>, tensor<4xf16>, tensor<4xi8>, tensor<4xi64>, tensor<4xf32>, tensor<4xi32>) {
  // CHECK-NEXT: %[[A:.*]] = repro.cast %arg0 {{.*}} : (tensor<4xbf16>) -> tensor<4xf64>
  // CHECK-NEXT: %[[B:.*]] = repro.cast %arg0 {{.*}} : (tensor<4xbf16>) -> tensor<4xf16>
  // CHECK-NEXT: %[[C:.*]] = repro.cast %arg1 {{.*}} : (tensor<4xi8>) -> tensor<4xi64>
  // CHECK-NEXT: %[[D:.*]] = repro.cast %arg2 {{.*}} : (tensor<4xi1>) -> tensor<4xf32>
  // CHECK-NEXT: return %[[A]], %[[B]], %arg1, %[[C]], %[[D]], %arg3
  %0 = repro.cast %b {numerics = "convert-1", version = 1 : i64} : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = repro.cast %0 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf64>
  %2 = repro.cast %0 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf16>
  %3 = repro.cast %i {numerics = "convert-1", version = 1 : i64} : (tensor<4xi8>) -> tensor<4xi32>
  %4 = repro.cast %3 {numerics = "convert-1", version = 1 : i64} : (tensor<4xi32>) -> tensor<4xi8>
  %5 = repro.cast %3 {numerics = "convert-1", version = 1 : i64} : (tensor<4xi32>) -> tensor<4xi64>
  %6 = repro.cast %t {numerics = "convert-1", version = 1 : i64} : (tensor<4xi1>) -> tensor<4xi64>
  %7 = repro.cast %6 {numerics = "convert-1", version = 1 : i64} : (tensor<4xi64>) -> tensor<4xf32>
  %8 = repro.cast %k {numerics = "convert-1", version = 1 : i64} : (tensor<4xi32>) -> tensor<4xf64>
  %9 = repro.cast %8 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf64>) -> tensor<4xi32>
  return %1, %2, %4, %5, %7, %9 : tensor<4xf64>, tensor<4xf16>, tensor<4xi8>, tensor<4xi64>, tensor<4xf32>, tensor<4xi32>
}

// -----

// What a cast made comes back as it was.
// CHECK-LABEL: func.func @stored
func.func @stored(%x: tensor<2x2xf32>) -> tensor<4xbf16> {
  // CHECK-NEXT: %[[N:.*]] = repro.cast %arg0
  // CHECK-NEXT: %[[R:.*]] = repro.reshape %[[N]]
  // CHECK-NEXT: return %[[R]]
  %0 = repro.cast %x {numerics = "convert-1", version = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xbf16>
  %1 = repro.reshape %0 {numerics = "none", version = 1 : i64} : (tensor<2x2xbf16>) -> tensor<4xbf16>
  %2 = repro.cast %1 {numerics = "convert-1", version = 1 : i64} : (tensor<4xbf16>) -> tensor<4xf32>
  %3 = repro.cast %2 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xbf16>
  return %3 : tensor<4xbf16>
}

// -----

// CHECK-LABEL: func.func @kept
func.func @kept(%b: tensor<4xbf16>, %h: tensor<4xf16>, %f: tensor<4xf32>, %i: tensor<4xi32>, %t: tensor<4xi1>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi8>, tensor<4xi1>, tensor<4xf32>) {
  // A subnormal bf16 becomes zero on the way back; NaN loses its payload.
  // CHECK-NEXT: %[[B:.*]] = repro.cast %arg0 {{.*}}xf32>
  // CHECK-NEXT: repro.cast %[[B]] {{.*}}xbf16>
  %0 = repro.cast %b {numerics = "convert-1", version = 1 : i64} : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = repro.cast %0 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK-NEXT: %[[H:.*]] = repro.cast %arg1 {{.*}}xf32>
  // CHECK-NEXT: repro.cast %[[H]] {{.*}}xf16>
  %2 = repro.cast %h {numerics = "convert-1", version = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
  %3 = repro.cast %2 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf16>
  // f64 to f32 flushes what is subnormal there.
  // CHECK-NEXT: %[[W:.*]] = repro.cast %arg0 {{.*}}xf64>
  // CHECK-NEXT: repro.cast %[[W]] {{.*}}xf32>
  %4 = repro.cast %b {numerics = "convert-1", version = 1 : i64} : (tensor<4xbf16>) -> tensor<4xf64>
  %5 = repro.cast %4 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf64>) -> tensor<4xf32>
  // CHECK-NEXT: %[[F:.*]] = repro.cast %arg2 {{.*}}xf64>
  // CHECK-NEXT: repro.cast %[[F]] {{.*}}xf32>
  %6 = repro.cast %f {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf64>
  %7 = repro.cast %6 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf64>) -> tensor<4xf32>
  // f32 does not hold every i32; by way of a float, 300 becomes 127 and not 44.
  // CHECK-NEXT: %[[I:.*]] = repro.cast %arg3 {{.*}}xf32>
  // CHECK-NEXT: repro.cast %[[I]] {{.*}}xi32>
  // CHECK-NEXT: %[[J:.*]] = repro.cast %arg3 {{.*}}xf64>
  // CHECK-NEXT: repro.cast %[[J]] {{.*}}xi8>
  %8 = repro.cast %i {numerics = "convert-1", version = 1 : i64} : (tensor<4xi32>) -> tensor<4xf32>
  %9 = repro.cast %8 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xi32>
  %10 = repro.cast %i {numerics = "convert-1", version = 1 : i64} : (tensor<4xi32>) -> tensor<4xf64>
  %11 = repro.cast %10 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf64>) -> tensor<4xi8>
  // Any byte but 0 is true, and comes back as 1.
  // CHECK-NEXT: %[[T:.*]] = repro.cast %arg4 {{.*}}xi32>
  // CHECK-NEXT: repro.cast %[[T]] {{.*}}xi1>
  %12 = repro.cast %t {numerics = "convert-1", version = 1 : i64} : (tensor<4xi1>) -> tensor<4xi32>
  %13 = repro.cast %12 {numerics = "convert-1", version = 1 : i64} : (tensor<4xi32>) -> tensor<4xi1>
  // Rounded to f16 first.
  // CHECK-NEXT: %[[R:.*]] = repro.cast %arg2 {{.*}}xf16>
  // CHECK-NEXT: repro.cast %[[R]] {{.*}}xf32>
  %14 = repro.cast %f {numerics = "convert-1", version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf16>
  %15 = repro.cast %14 {numerics = "convert-1", version = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
  return %1, %3, %5, %7, %9, %11, %13, %15 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi8>, tensor<4xi1>, tensor<4xf32>
}
