// Products of an activation with what follows from constants become matmul_exact16: exact16.9.
// RUN: %exact16 "%s" | %check

// CHECK-LABEL: func.func @products
// CHECK-SAME: plan.choices = ["exact16-1"]
func.func @products(%x: tensor<5x4xf32>, %i: tensor<2xi64>) -> (tensor<5x3xf32>, tensor<4x5xf32>, tensor<5x3xf32>, tensor<5x5xf32>, tensor<5x3xf32>, tensor<2x3x3xf32>) {
  %w = repro.weight "w" {file = "f", offset = 0 : i64, length = 48 : i64} : tensor<4x3xf32>
  %s = repro.weight "s" {file = "f", offset = 48 : i64, length = 48 : i64} : tensor<2x4x3xf32>
  // CHECK: repro.matmul_exact16 %arg0, %w {numerics = "exact16-1", trans_b = 0 : i64, version = 1 : i64}
  %0 = repro.matmul %x, %w {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32> loc("a"("MatMul"("0")))
  // A transposed first operand is transposed before; a cast of a constant is one.
  // CHECK: %[[T:.*]] = repro.transpose %arg0
  // CHECK: repro.matmul_exact16 %[[T]]
  %y = repro.weight "y" {file = "f", offset = 96 : i64, length = 100 : i64} : tensor<5x5xf32>
  %z = repro.relu %y {numerics = "ieee", version = 1 : i64} : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %2 = repro.matmul %x, %z {numerics = "fp32-1", version = 1 : i64, trans_a = 1 : i64, trans_b = 0 : i64} : (tensor<5x4xf32>, tensor<5x5xf32>) -> tensor<4x5xf32> loc("b"("Gemm"("1")))
  // Not those of other operators, of two activations, or of two constants.
  // CHECK: repro.matmul %
  // CHECK: repro.matmul %
  // CHECK: repro.matmul %
  %3 = repro.matmul %x, %w {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32> loc("c"("Einsum"("2")))
  %4 = repro.matmul %x, %x {numerics = "fp32-1", version = 1 : i64, trans_b = 1 : i64} : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x5xf32> loc("d"("MatMul"("3")))
  %5 = repro.matmul %y, %0 {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<5x5xf32>, tensor<5x3xf32>) -> tensor<5x3xf32> loc("e"("MatMul"("4")))
  // Which matrix an index chooses does not matter.
  // CHECK: repro.matmul_exact16
  %6 = repro.gather %s, %i {numerics = "convert-1", version = 1 : i64, axis = 0 : i64} : (tensor<2x4x3xf32>, tensor<2xi64>) -> tensor<2x4x3xf32> loc("f"("Gather"("5")))
  %7 = repro.slice %x {numerics = "none", version = 1 : i64, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<5x4xf32>) -> tensor<3x4xf32>
  %8 = repro.matmul %7, %6 {numerics = "fp32-1", version = 1 : i64, trans_b = 0 : i64} : (tensor<3x4xf32>, tensor<2x4x3xf32>) -> tensor<2x3x3xf32> loc("g"("MatMul"("6")))
  return %0, %2, %3, %4, %5, %8 : tensor<5x3xf32>, tensor<4x5xf32>, tensor<5x3xf32>, tensor<5x5xf32>, tensor<5x3xf32>, tensor<2x3x3xf32>
}

// Every attention, and products with integers of a few bits.
// CHECK-LABEL: func.func @attention
func.func @attention(%x: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x3xf32>) {
  // CHECK: repro.attention_exact16 %arg0, %arg0, %arg0 {causal = 1 : i64, kv_heads = 2 : i64, numerics = "attention-exact16-1", q_heads = 2 : i64, scale = 5.000000e-01 : f32, version = 1 : i64}
  %0 = repro.attention %x, %x, %x {numerics = "attention-1", version = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f32, causal = 1 : i64} : (tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32> loc("a"("Attention"("0")))
  %b = repro.weight "b" {file = "f", offset = 0 : i64, length = 24 : i64} : tensor<3x8xui8>
  %s = repro.weight "s" {file = "f", offset = 24 : i64, length = 12 : i64} : tensor<3x1xf32>
  // CHECK: repro.matmul_nbits_exact16
  %1 = repro.matmul_nbits %x, %b, %s {numerics = "fp32-1", version = 1 : i64, bits = 8 : i64, block = 0 : i64, trans_b = 1 : i64, zero = 128 : i64} : (tensor<1x5x8xf32>, tensor<3x8xui8>, tensor<3x1xf32>) -> tensor<1x5x3xf32> loc("b"("MatMulNBits"("1")))
  return %0, %1 : tensor<1x5x8xf32>, tensor<1x5x3xf32>
}

// Convolutions with weights of several channels a group.
// CHECK-LABEL: func.func @convolutions
func.func @convolutions(%x: tensor<1x4x5x5xf32>, %v: tensor<3x4x1x1xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x4x5x5xf32>, tensor<1x3x5x5xf32>, tensor<1x4x5x5xf32>) {
  %w = repro.weight "w" {file = "f", offset = 0 : i64, length = 144 : i64} : tensor<2x2x3x3xf32>
  %b = repro.weight "b" {file = "f", offset = 144 : i64, length = 4 : i64} : tensor<2xbf16>
  %d = repro.weight "d" {file = "f", offset = 148 : i64, length = 16 : i64} : tensor<4x1x1x1xf32>
  %u = repro.weight "u" {file = "f", offset = 164 : i64, length = 64 : i64} : tensor<4x4x1x1xf32>
  // CHECK: repro.conv_exact16 %arg0, %w, %b {dilations = array<i64: 1, 1>, groups = 2 : i64, numerics = "exact16-1", pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>, version = 1 : i64}
  %0 = repro.conv %x, %w, %b {numerics = "fp32-1", version = 1 : i64, dilations = array<i64: 1, 1>, groups = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<2x2x3x3xf32>, tensor<2xbf16>) -> tensor<1x2x3x3xf32> loc("a"("Conv"("0")))
  // Not those of one channel a group, with weights that are activations, or of other operators.
  // CHECK: repro.conv %arg0, %d
  // CHECK: repro.conv %arg0, %arg1
  // CHECK: repro.conv %arg0, %u
  %1 = repro.conv %x, %d {numerics = "fp32-1", version = 1 : i64, dilations = array<i64: 1, 1>, groups = 4 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x5x5xf32> loc("b"("Conv"("1")))
  %2 = repro.conv %x, %v {numerics = "fp32-1", version = 1 : i64, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<3x4x1x1xf32>) -> tensor<1x3x5x5xf32> loc("c"("Conv"("2")))
  %3 = repro.conv %x, %u {numerics = "fp32-1", version = 1 : i64, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x5xf32> loc("d"("QLinearConv"("3")))
  return %0, %1, %2, %3 : tensor<1x2x3x3xf32>, tensor<1x4x5x5xf32>, tensor<1x3x5x5xf32>, tensor<1x4x5x5xf32>
}
