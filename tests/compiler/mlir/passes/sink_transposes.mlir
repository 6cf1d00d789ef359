// Transposes sink through pointwise operations if fewer remain. Otherwise they stay.
// RUN: %sink "%s" --split-input-file | %check
// RUN: %earlier_sink "%s" --split-input-file | %check

// CHECK-LABEL: func.func @cancelled
func.func @cancelled(%x: tensor<2x4x4x3xf32>, %y: tensor<2x4x4x3xf32>) -> tensor<2x4x4x3xf32> {
  %bias = repro.weight "bias" {file = "f", offset = 0 : i64, length = 12 : i64} : tensor<3x1x1xf32>
  %two = repro.weight "two" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000040"} : tensor<f32>
  // CHECK: %[[B:.*]] = repro.weight "bias [1, 1, 1, 3]" {file = "f"
  // CHECK: %[[S:.*]] = repro.add %arg0, %[[B]] {{.*}} -> tensor<2x4x4x3xf32>
  // CHECK-NEXT: %[[R:.*]] = repro.relu %[[S]]
  // CHECK-NEXT: %[[M:.*]] = repro.mul %arg1, %two
  // CHECK-NEXT: %[[A:.*]] = repro.add %[[R]], %[[M]]
  // CHECK-NEXT: return %[[A]]
  %0 = repro.transpose %x {numerics = "none", version = 1 : i64, perm = array<i64: 0, 3, 1, 2>} : (tensor<2x4x4x3xf32>) -> tensor<2x3x4x4xf32>
  %1 = repro.add %0, %bias {numerics = "ieee", version = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
  %2 = repro.relu %1 {numerics = "ieee", version = 1 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %3 = repro.transpose %y {numerics = "none", version = 1 : i64, perm = array<i64: 0, 3, 1, 2>} : (tensor<2x4x4x3xf32>) -> tensor<2x3x4x4xf32>
  %4 = repro.mul %3, %two {numerics = "ieee", version = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<f32>) -> tensor<2x3x4x4xf32>
  %5 = repro.add %2, %4 {numerics = "ieee", version = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %6 = repro.transpose %5 {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x4xf32>) -> tensor<2x4x4x3xf32>
  return %6 : tensor<2x4x4x3xf32>
}

// -----

// Concatenations, slices and pads have their axes in the other order.
// CHECK-LABEL: func.func @moved
func.func @moved(%x: tensor<2x5x4x3xf32>) -> tensor<2x5x5x6xf32> {
  // CHECK-NEXT: %[[S:.*]] = repro.slice %arg0 {numerics = "none", starts = array<i64: 0, 1, 0, 0>, steps = array<i64: 1, 2, 1, 1>, version = 1 : i64} : (tensor<2x5x4x3xf32>) -> tensor<2x2x4x3xf32>
  // CHECK-NEXT: %[[P:.*]] = repro.pad %[[S]] {begins = array<i64: 0, 3, 1, 0>, {{.*}} : (tensor<2x2x4x3xf32>) -> tensor<2x5x5x3xf32>
  // CHECK-NEXT: %[[C:.*]] = repro.concat %[[P]], %[[P]] {axis = 3 : i64
  // CHECK-NEXT: return %[[C]]
  %0 = repro.transpose %x {numerics = "none", version = 1 : i64, perm = array<i64: 0, 3, 1, 2>} : (tensor<2x5x4x3xf32>) -> tensor<2x3x5x4xf32>
  %1 = repro.slice %0 {numerics = "none", version = 1 : i64, starts = array<i64: 0, 0, 1, 0>, steps = array<i64: 1, 1, 2, 1>} : (tensor<2x3x5x4xf32>) -> tensor<2x3x2x4xf32>
  %2 = repro.pad %1 {numerics = "none", version = 1 : i64, begins = array<i64: 0, 0, 3, 1>} : (tensor<2x3x2x4xf32>) -> tensor<2x3x5x5xf32>
  %3 = repro.concat %2, %2 {numerics = "none", version = 1 : i64, axis = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<2x3x5x5xf32>) -> tensor<2x6x5x5xf32>
  %4 = repro.transpose %3 {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 3, 1>} : (tensor<2x6x5x5xf32>) -> tensor<2x5x5x6xf32>
  return %4 : tensor<2x5x5x6xf32>
}

// -----

// Nothing is gained: the text stays.
// CHECK-LABEL: func.func @alone
func.func @alone(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // CHECK-NEXT: %[[T:.*]] = repro.transpose %arg0
  // CHECK-NEXT: repro.relu %[[T]]
  %0 = repro.transpose %x {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = repro.relu %0 {numerics = "ieee", version = 1 : i64} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// Another operand in the order of the result, a result that is larger than what was turned, and what is summed along an axis: no way
// through.
// CHECK-LABEL: func.func @stays
func.func @stays(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>, %u: tensor<5x1x1xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<5x2x3xf32>) {
  // CHECK-NEXT: %[[T:.*]] = repro.transpose %arg0
  // CHECK-NEXT: %[[A:.*]] = repro.add %[[T]], %arg1
  // CHECK-NEXT: repro.transpose %[[A]]
  %0 = repro.transpose %x {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = repro.add %0, %y {numerics = "ieee", version = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = repro.transpose %1 {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: %[[C:.*]] = repro.transpose %arg1
  // CHECK-NEXT: repro.softmax %[[C]]
  %3 = repro.transpose %y {numerics = "none", version = 1 : i64, perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %4 = repro.softmax %3 {axis = 1 : i64, numerics = "row-1", version = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: %[[E:.*]] = repro.add %[[T]], %arg2
  // CHECK-NEXT: repro.transpose %[[E]]
  %6 = repro.add %0, %u {numerics = "ieee", version = 1 : i64} : (tensor<3x2xf32>, tensor<5x1x1xf32>) -> tensor<5x3x2xf32>
  %7 = repro.transpose %6 {numerics = "none", version = 1 : i64, perm = array<i64: 0, 2, 1>} : (tensor<5x3x2xf32>) -> tensor<5x2x3xf32>
  return %2, %4, %7 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<5x2x3xf32>
}
