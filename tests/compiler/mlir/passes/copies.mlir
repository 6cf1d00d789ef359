// Identity copies disappear and copies of copies merge. Rounding, flushing and NaN canonicalization stay.
// RUN: %canonicalize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @reshapes
func.func @reshapes(%x: tensor<?x6xf32, #repro.dims<"n", "">>) -> (tensor<?x2x3xf32, #repro.dims<"n", "", "">>, tensor<?x6xf32, #repro.dims<"n", "">>) {
  // CHECK-NEXT: %[[R:.*]] = repro.reshape %arg0 {{.*}} -> tensor<?x2x3xf32, #repro.dims<"n", "", "">>
  // CHECK-NEXT: return %[[R]], %arg0
  %0 = repro.reshape %x {numerics = "none", version = 1 : i64} : (tensor<?x6xf32, #repro.dims<"n", "">>) -> tensor<?x3x2xf32, #repro.dims<"n", "", "">>
  %1 = repro.reshape %0 {numerics = "none", version = 1 : i64} : (tensor<?x3x2xf32, #repro.dims<"n", "", "">>) -> tensor<?x2x3xf32, #repro.dims<"n", "", "">>
  %2 = repro.reshape %1 {numerics = "none", version = 1 : i64} : (tensor<?x2x3xf32, #repro.dims<"n", "", "">>) -> tensor<?x6xf32, #repro.dims<"n", "">>
  return %1, %2 : tensor<?x2x3xf32, #repro.dims<"n", "", "">>, tensor<?x6xf32, #repro.dims<"n", "">>
}

// -----

// CHECK-LABEL: func.func @transposes
func.func @transposes(%x: tensor<2x3x4xf32>, %y: tensor<2x1x?x4xf32, #repro.dims<"", "", "n", "">>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<2x?x1x4xf32, #repro.dims<"", "n", "", "">>, tensor<?x2x1x4xf32, #repro.dims<"n", "", "", "">>) {
  // Forth and back.
  %0 = repro.transpose %x {numerics = "none", version = 1 : i64, perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = repro.transpose %0 {numerics = "none", version = 1 : i64, perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  // Two become one.
  // CHECK-NEXT: %[[B:.*]] = repro.transpose %arg0 {numerics = "none", perm = array<i64: 2, 1, 0>, version = 1 : i64}
  %2 = repro.transpose %0 {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  // Dimensions of 1 move without an element.
  // CHECK-NEXT: %[[C:.*]] = repro.reshape %arg1 {{.*}} -> tensor<2x?x1x4xf32, #repro.dims<"", "n", "", "">>
  %3 = repro.transpose %y {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 1, 3>} : (tensor<2x1x?x4xf32, #repro.dims<"", "", "n", "">>) -> tensor<2x?x1x4xf32, #repro.dims<"", "n", "", "">>
  // An open dimension is not 1.
  // CHECK-NEXT: %[[D:.*]] = repro.transpose %arg1 {{.*}}perm = array<i64: 2, 0, 1, 3>
  %4 = repro.transpose %y {numerics = "none", version = 1 : i64, perm = array<i64: 2, 0, 1, 3>} : (tensor<2x1x?x4xf32, #repro.dims<"", "", "n", "">>) -> tensor<?x2x1x4xf32, #repro.dims<"n", "", "", "">>
  // CHECK-NEXT: return %arg0, %[[B]], %[[C]], %[[D]]
  return %1, %2, %3, %4 : tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<2x?x1x4xf32, #repro.dims<"", "n", "", "">>, tensor<?x2x1x4xf32, #repro.dims<"n", "", "", "">>
}

// -----

// CHECK-LABEL: func.func @nothing
func.func @nothing(%x: tensor<?x6x1xf32, #repro.dims<"n", "", "">>, %none: tensor<?x0x1xf32, #repro.dims<"n", "", "">>) -> (tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x12x1xf32, #repro.dims<"n", "", "">>) {
  // CHECK-NEXT: %[[C:.*]] = repro.concat %arg0, %arg0 {axis = 1 : i64
  // CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0, %[[C]]
  %0 = repro.slice %x {numerics = "none", version = 1 : i64, starts = array<i64: 0, 0, -1>, steps = array<i64: 1, 1, -1>} : (tensor<?x6x1xf32, #repro.dims<"n", "", "">>) -> tensor<?x6x1xf32, #repro.dims<"n", "", "">>
  %1 = repro.expand %x {numerics = "none", version = 1 : i64} : (tensor<?x6x1xf32, #repro.dims<"n", "", "">>) -> tensor<?x6x1xf32, #repro.dims<"n", "", "">>
  %2 = repro.concat %none, %x {numerics = "none", version = 1 : i64, axis = 1 : i64} : (tensor<?x0x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>) -> tensor<?x6x1xf32, #repro.dims<"n", "", "">>
  %3 = repro.pad %x {numerics = "none", version = 1 : i64, begins = array<i64: 0, 0, 0>} : (tensor<?x6x1xf32, #repro.dims<"n", "", "">>) -> tensor<?x6x1xf32, #repro.dims<"n", "", "">>
  %4 = repro.pad_wrap %x {numerics = "none", version = 1 : i64, begins = array<i64: 0, 0, 0>} : (tensor<?x6x1xf32, #repro.dims<"n", "", "">>) -> tensor<?x6x1xf32, #repro.dims<"n", "", "">>
  %5 = repro.concat %x, %none, %x {numerics = "none", version = 1 : i64, axis = 1 : i64} : (tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x0x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>) -> tensor<?x12x1xf32, #repro.dims<"n", "", "">>
  return %0, %1, %2, %3, %4, %5 : tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x6x1xf32, #repro.dims<"n", "", "">>, tensor<?x12x1xf32, #repro.dims<"n", "", "">>
}

// -----

// As large as before and yet something: a reversal, a shift.
// CHECK-LABEL: func.func @something
func.func @something(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  // CHECK-NEXT: repro.slice
  // CHECK-NEXT: repro.pad
  // CHECK-NEXT: repro.pad_wrap
  %0 = repro.slice %x {numerics = "none", version = 1 : i64, starts = array<i64: -1>, steps = array<i64: -1>} : (tensor<6xf32>) -> tensor<6xf32>
  %1 = repro.pad %x {numerics = "none", version = 1 : i64, begins = array<i64: 2>} : (tensor<6xf32>) -> tensor<6xf32>
  %2 = repro.pad_wrap %x {numerics = "none", version = 1 : i64, begins = array<i64: 2>} : (tensor<6xf32>) -> tensor<6xf32>
  return %0, %1, %2 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// x + 0 makes every NaN 7fc00000, flushes subnormals, and of -0 makes 0; x * 1 does the first two. They are no copies (formats.5).
// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %zero = repro.weight "zero" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000000"} : tensor<f32>
  %one = repro.weight "one" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<f32>
  // CHECK: repro.add %arg0, %zero
  // CHECK: repro.mul %arg0, %one
  %0 = repro.add %x, %zero {numerics = "ieee", version = 1 : i64} : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = repro.mul %x, %one {numerics = "ieee", version = 1 : i64} : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}

// -----

// CHECK-LABEL: func.func @expanded
func.func @expanded(%x: tensor<1x4xf32>, %y: tensor<?x4xf32, #repro.dims<"n", "">>) -> (tensor<?x4xf32, #repro.dims<"n", "">>, tensor<?x4xf32, #repro.dims<"n", "">>) {
  // The sum repeats x by itself; in the second the result would be smaller.
  // CHECK-NEXT: %[[E:.*]] = repro.expand %arg0
  // CHECK-NEXT: repro.add %arg0, %arg1
  // CHECK-NEXT: repro.add %[[E]], %arg0
  %0 = repro.expand %x {numerics = "none", version = 1 : i64} : (tensor<1x4xf32>) -> tensor<?x4xf32, #repro.dims<"n", "">>
  %1 = repro.add %0, %y {numerics = "ieee", version = 1 : i64} : (tensor<?x4xf32, #repro.dims<"n", "">>, tensor<?x4xf32, #repro.dims<"n", "">>) -> tensor<?x4xf32, #repro.dims<"n", "">>
  %2 = repro.add %0, %x {numerics = "ieee", version = 1 : i64} : (tensor<?x4xf32, #repro.dims<"n", "">>, tensor<1x4xf32>) -> tensor<?x4xf32, #repro.dims<"n", "">>
  return %1, %2 : tensor<?x4xf32, #repro.dims<"n", "">>, tensor<?x4xf32, #repro.dims<"n", "">>
}

// -----

// What is computed of small constants is one.
// CHECK-LABEL: func.func @constants
func.func @constants(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = repro.weight "w" {file = "", offset = 0 : i64, length = 24 : i64, data = "000000000000803f00000040000040400000804000000a04"} : tensor<2x3xf32>
  %far = repro.weight "far" {file = "f", offset = 0 : i64, length = 24 : i64} : tensor<2x3xf32>
  // CHECK-DAG: %[[C:.*]] = repro.weight "f32 3x2 {{.*}}data = "00000000000040400000803f000080400000004000000a04"
  // CHECK-DAG: %[[F:.*]] = repro.transpose %far
  // CHECK: repro.mul %arg0, %[[C]]
  // CHECK: repro.mul %arg0, %[[F]]
  %0 = repro.transpose %w {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = repro.transpose %far {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = repro.mul %x, %0 {numerics = "ieee", version = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %3 = repro.mul %x, %1 {numerics = "ieee", version = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %2, %3 : tensor<3x2xf32>, tensor<3x2xf32>
}
