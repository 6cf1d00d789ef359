// A reshape or contiguous slice of a large weight is a weight with its own range. Bodies own their constants.
// RUN: %canonicalize "%s" --split-input-file | %check

// CHECK-LABEL: func.func @parts
func.func @parts() -> (tensor<2x6xf32>, tensor<1x2x3xf32>, tensor<1x1x2xf32>, tensor<4x1x3xf32>, tensor<1x2x3xf32>, tensor<6x4xf32>) {
  %w = repro.weight "w" {file = "f", offset = 100 : i64, length = 96 : i64} : tensor<4x2x3xf32>
  %turned = repro.weight "turned" {file = "f", offset = 0 : i64, length = 96 : i64, transposed} : tensor<4x6xf32>
  // CHECK-DAG: %[[A:.*]] = repro.weight "w from 48 [2, 2, 3] [2, 6]" {file = "f", length = 48 : i64, offset = 148 : i64} : tensor<2x6xf32>
  // CHECK-DAG: %[[B:.*]] = repro.weight "w from 72 [1, 2, 3]" {file = "f", length = 24 : i64, offset = 172 : i64} : tensor<1x2x3xf32>
  // CHECK-DAG: %[[C:.*]] = repro.weight "w from 40 [1, 1, 2]" {file = "f", length = 8 : i64, offset = 140 : i64} : tensor<1x1x2xf32>
  %half = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: -2, 0, 0>, steps = array<i64: 1, 1, 1>} : (tensor<4x2x3xf32>) -> tensor<2x2x3xf32>
  %a = repro.reshape %half {numerics = "none", version = 1 : i64} : (tensor<2x2x3xf32>) -> tensor<2x6xf32>
  %b = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: -1, 0, 0>, steps = array<i64: -1, 1, 1>} : (tensor<4x2x3xf32>) -> tensor<1x2x3xf32>
  %c = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: 1, 1, 1>, steps = array<i64: 1, 1, 1>} : (tensor<4x2x3xf32>) -> tensor<1x1x2xf32>
  // Not together, in another order, or stored in another one.
  // CHECK: %[[D:.*]] = repro.slice %w
  %d = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: 0, 1, 0>, steps = array<i64: 1, 1, 1>} : (tensor<4x2x3xf32>) -> tensor<4x1x3xf32>
  // CHECK-NEXT: %[[E:.*]] = repro.slice %w
  %e = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: 0, 0, -1>, steps = array<i64: 1, 1, -1>} : (tensor<4x2x3xf32>) -> tensor<1x2x3xf32>
  // CHECK-NEXT: %[[F:.*]] = repro.reshape %turned
  %f = repro.reshape %turned {numerics = "none", version = 1 : i64} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  // CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]]
  return %a, %b, %c, %d, %e, %f : tensor<2x6xf32>, tensor<1x2x3xf32>, tensor<1x1x2xf32>, tensor<4x1x3xf32>, tensor<1x2x3xf32>, tensor<6x4xf32>
}

// -----

// What is carried is no constant behind the first step, whatever it is before.
// CHECK-LABEL: func.func @body_0(%arg0: tensor<i64>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>)
// CHECK-DAG: %[[W:.*]] = repro.weight "w from 8 [1, 2] [2]"
// CHECK: %[[P:.*]] = repro.mul %arg1, %[[W]]
// CHECK: repro.add %[[P]], %arg2
func.func @body_0(%i: tensor<i64>, %h: tensor<2xf32>, %w: tensor<2xf32>, %x: tensor<2xf32>) -> (tensor<i1>, tensor<2xf32>) attributes {repro.body} {
  %yes = repro.weight "yes" {file = "", offset = 0 : i64, length = 1 : i64, data = "01"} : tensor<i1>
  %0 = repro.mul %h, %w {numerics = "ieee", version = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = repro.add %0, %x {numerics = "ieee", version = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %yes, %1 : tensor<i1>, tensor<2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: repro.flow "loop" [@body_0](%arg1, %{{.*}}, %w{{.*}}, %arg0) {carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @main(%x: tensor<2xf32>, %n: tensor<i64>) -> tensor<2xf32> {
  %w = repro.weight "w" {file = "f", offset = 0 : i64, length = 16 : i64} : tensor<2x2xf32>
  %yes = repro.weight "yes" {file = "", offset = 0 : i64, length = 1 : i64, data = "01"} : tensor<i1>
  %0 = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
  %1 = repro.slice %w {numerics = "none", version = 1 : i64, starts = array<i64: 1, 0>, steps = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
  %first = repro.reshape %0 {numerics = "none", version = 1 : i64} : (tensor<1x2xf32>) -> tensor<2xf32>
  %second = repro.reshape %1 {numerics = "none", version = 1 : i64} : (tensor<1x2xf32>) -> tensor<2xf32>
  %y = repro.flow "loop" [@body_0](%n, %yes, %first, %second, %x) {carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
