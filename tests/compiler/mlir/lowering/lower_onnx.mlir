// ONNX nodes become typed operations with the numerics and version of spec/opset.toml. Shapes are inferred.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: -> (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "y"})
func.func @elementwise(%x: tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, %row: tensor<4xf32>)
    -> (!onnx.unknown {onnx.name = "y"}) {
  // CHECK: %[[A:.*]] = repro.add %arg0, %arg1 {numerics = "ieee", version = 1 : i64} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>
  %0 = onnx.node "Add"(%x, %row) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<4xf32>) -> !onnx.unknown
  // CHECK: %[[B:.*]] = repro.mul %arg1, %[[A]] {{.*}} -> tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>
  %1 = onnx.node "Mul"(%row, %0) {name = "b", domain = "ai.onnx", version = 23 : i64, params = {}} : (tensor<4xf32>, !onnx.unknown) -> !onnx.unknown
  // CHECK: repro.sin %[[B]] {numerics = "correctly-rounded"
  %2 = onnx.node "Sin"(%1) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.cos
  %3 = onnx.node "Cos"(%2) {name = "d", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.sigmoid {{.*}} {numerics = "graph-1"
  %4 = onnx.node "Sigmoid"(%3) {name = "e", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.silu
  %5 = onnx.node "Swish"(%4) {name = "f", domain = "", version = 24 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.softmax
  %6 = onnx.node "Softmax"(%5) {name = "g", domain = "", version = 23 : i64, params = {axis = 2 : i64}} : (!onnx.unknown) -> !onnx.unknown
  return %6 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @rows
func.func @rows(%ids: tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> !onnx.unknown {
  %table = onnx.weight "table" {file = "w", offset = 0 : i64, length = 64 : i64} : tensor<8x4xbf16>
  %scale = onnx.weight "scale" {file = "w", offset = 64 : i64, length = 16 : i64} : tensor<4xf32>
  // CHECK: repro.gather %table, %arg0 {{.*}} : (tensor<8x4xbf16>, tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>
  %0 = onnx.node "Gather"(%table, %ids) {name = "a", domain = "", version = 23 : i64, params = {axis = -2 : i64}} : (tensor<8x4xbf16>, tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> !onnx.unknown
  // CHECK: repro.rmsnorm %{{.*}}, %scale {epsilon = 9.99999974E-6 : f32, numerics = "row-1"
  %1 = onnx.node "RMSNormalization"(%0, %scale) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<4xf32>) -> !onnx.unknown
  // CHECK: repro.argmax {{.*}} -> tensor<?x?xi64, #repro.dims<"batch", "seq">>
  // CHECK: repro.reshape {{.*}} -> tensor<?x?x1xi64, #repro.dims<"batch", "seq", "">>
  %2 = onnx.node "ArgMax"(%1) {name = "c", domain = "", version = 23 : i64, params = {axis = -1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  return %2 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown {
  %last = onnx.weight "last" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<1xi64>
  %split = onnx.weight "split" {file = "", offset = 0 : i64, length = 32 : i64, data = "0000000000000000ffffffffffffffff02000000000000000300000000000000"} : tensor<4xi64>
  %rest = onnx.weight "rest" {file = "", offset = 0 : i64, length = 24 : i64, data = "00000000000000000000000000000000ffffffffffffffff"} : tensor<3xi64>
  // CHECK: repro.reshape %arg0 {numerics = "none", version = 1 : i64} : {{.*}} -> tensor<?x?x6x1xf32, #repro.dims<"batch", "seq", "", "">>
  %0 = onnx.node "Unsqueeze"(%x, %last) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.reshape {{.*}} -> tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>
  %1 = onnx.node "Squeeze"(%0, %last) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.reshape {{.*}} -> tensor<?x?x2x3xf32, #repro.dims<"batch", "seq", "", "">>
  %2 = onnx.node "Reshape"(%1, %split) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<4xi64>) -> !onnx.unknown
  // CHECK: repro.reshape {{.*}} -> tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>
  %3 = onnx.node "Reshape"(%2, %rest) {name = "d", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<3xi64>) -> !onnx.unknown
  // CHECK-NOT: repro
  %4 = onnx.node "Identity"(%3) {name = "e", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: return
  return %4 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @flat
func.func @flat(%x: tensor<?x2x3xf32, #repro.dims<"batch", "", "">>, %y: tensor<2x3xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK: repro.reshape %arg0 {{.*}} -> tensor<?x6xf32, #repro.dims<"batch", "">>
  %0 = onnx.node "Flatten"(%x) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x2x3xf32, #repro.dims<"batch", "", "">>) -> !onnx.unknown
  // CHECK: repro.reshape %arg1 {{.*}} -> tensor<1x6xf32>
  %1 = onnx.node "Flatten"(%y) {name = "b", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (tensor<2x3xf32>) -> !onnx.unknown
  // CHECK: repro.reshape %arg1 {{.*}} -> tensor<6x1xf32>
  %2 = onnx.node "Flatten"(%y) {name = "c", domain = "", version = 9 : i64, params = {axis = 2 : i64}} : (tensor<2x3xf32>) -> !onnx.unknown
  return %0, %1, %2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @products
func.func @products(%x: tensor<?x6xf32, #repro.dims<"seq", "">>) -> !onnx.unknown {
  %w = onnx.weight "w" {file = "w", offset = 0 : i64, length = 120 : i64} : tensor<6x5xf32>
  %v = onnx.weight "v" {file = "w", offset = 120 : i64, length = 60 : i64} : tensor<3x5xf32>
  %c = onnx.weight "c" {file = "w", offset = 180 : i64, length = 12 : i64} : tensor<3xf32>
  // CHECK: repro.matmul %arg0, %w {numerics = "fp32-1", trans_b = 0 : i64, version = 1 : i64} : {{.*}} -> tensor<?x5xf32, #repro.dims<"seq", "">>
  %0 = onnx.node "MatMul"(%x, %w) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x6xf32, #repro.dims<"seq", "">>, tensor<6x5xf32>) -> !onnx.unknown
  // CHECK: repro.matmul %{{.*}}, %v {numerics = "fp32-1", trans_b = 1 : i64, {{.*}} -> tensor<?x3xf32, #repro.dims<"seq", "">>
  // CHECK: repro.add {{.*}}, %c
  %1 = onnx.node "Gemm"(%0, %v, %c) {name = "b", domain = "", version = 23 : i64, params = {transB = 1 : i64, alpha = 1.0 : f32}} : (!onnx.unknown, tensor<3x5xf32>, tensor<3xf32>) -> !onnx.unknown
  return %1 : !onnx.unknown
}

// -----

// Products of leading dimensions and of a by columns; 4-bit integers: flat scales get their shape, no zero points are 8.
// CHECK-LABEL: func.func @more_products
func.func @more_products(%x: tensor<?x3x6x2xf32, #repro.dims<"batch", "", "", "">>, %y: tensor<3x2x5xf32>, %z: tensor<40x?xf32, #repro.dims<"", "seq">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %w = onnx.weight "w" {file = "w", offset = 0 : i64, length = 320 : i64} : tensor<2x40xf32>
  %b = onnx.weight "b" {file = "w", offset = 320 : i64, length = 96 : i64} : tensor<3x2x16xui8>
  %s = onnx.weight "s" {file = "w", offset = 456 : i64, length = 24 : i64} : tensor<6xf32>
  %zeros = onnx.weight "zeros" {file = "w", offset = 428 : i64, length = 3 : i64} : tensor<3xui8>
  %bias = onnx.weight "bias" {file = "w", offset = 432 : i64, length = 12 : i64} : tensor<3xf32>
  %none = onnx.absent
  // CHECK: repro.matmul %arg0, %arg1 {numerics = "fp32-1", trans_b = 0 : i64, version = 1 : i64} : {{.*}} -> tensor<?x3x6x5xf32, #repro.dims<"batch", "", "", "">>
  %0 = onnx.node "MatMul"(%x, %y) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x3x6x2xf32, #repro.dims<"batch", "", "", "">>, tensor<3x2x5xf32>) -> !onnx.unknown
  // CHECK: %[[G:.*]] = repro.matmul %arg2, %w {numerics = "fp32-1", trans_a = 1 : i64, trans_b = 1 : i64, version = 1 : i64} : {{.*}} -> tensor<?x2xf32, #repro.dims<"seq", "">>
  %1 = onnx.node "Gemm"(%z, %w) {name = "b", domain = "", version = 23 : i64, params = {transA = 1 : i64, transB = 1 : i64}} : (tensor<40x?xf32, #repro.dims<"", "seq">>, tensor<2x40xf32>) -> !onnx.unknown
  // CHECK: %[[U:.*]] = repro.matmul %[[G]], %w {numerics = "fp32-1", trans_b = 0 : i64
  %2 = onnx.node "Gemm"(%1, %w) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<2x40xf32>) -> !onnx.unknown
  // CHECK: %[[N:.*]] = repro.matmul_nbits %[[U]], %b, %{{.*}} {bits = 4 : i64, block = 32 : i64, numerics = "fp32-1", trans_b = 1 : i64, version = 1 : i64, zero = 8 : i64} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>) -> tensor<?x3xf32, #repro.dims<"seq", "">>
  // CHECK: repro.add %[[N]], %bias
  %3 = onnx.node "MatMulNBits"(%2, %b, %s, %none, %none, %bias) {name = "d", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64, accuracy_level = 4 : i64}} : (!onnx.unknown, tensor<3x2x16xui8>, tensor<6xf32>, !onnx.absent, !onnx.absent, tensor<3xf32>) -> !onnx.unknown
  // CHECK: repro.matmul_nbits %[[U]], %b, %{{.*}}, %{{.*}} {{{.*}} zero = 0 : i64} : {{.*}} tensor<3x2xf32>, tensor<3x1xui8>) -> tensor<?x3xf32, #repro.dims<"seq", "">>
  %4 = onnx.node "MatMulNBits"(%2, %b, %s, %zeros) {name = "e", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}} : (!onnx.unknown, tensor<3x2x16xui8>, tensor<6xf32>, tensor<3xui8>) -> !onnx.unknown
  return %0, %1, %3, %4 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// Gemm step by step: factors that are not 1, biases of a row, of a column and of one element; products of many matrices.
// CHECK-LABEL: func.func @gemm
func.func @gemm(%x: tensor<?x6xf32, #repro.dims<"seq", "">>, %y: tensor<6x?xf32, #repro.dims<"", "seq">>, %m: tensor<2x1x?x6xf32, #repro.dims<"", "", "seq", "">>, %n: tensor<3x6x5xf32>, %one: tensor<f32>, %rows: tensor<?x1xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %w = onnx.weight "w" {file = "w", offset = 0 : i64, length = 120 : i64} : tensor<6x5xf32>
  %v = onnx.weight "v" {file = "w", offset = 120 : i64, length = 120 : i64} : tensor<5x6xf32>
  %c = onnx.weight "c" {file = "w", offset = 240 : i64, length = 20 : i64} : tensor<5xf32>
  // CHECK: %[[P:.*]] = repro.matmul %arg0, %v {numerics = "fp32-1", trans_b = 1 : i64
  // CHECK: %[[A:.*]] = repro.mul %[[P]], %{{.*}} : {{.*}}, tensor<f32>) -> tensor<?x5xf32, #repro.dims<"seq", "">>
  // CHECK: %[[B:.*]] = repro.mul %c, %{{.*}} -> tensor<5xf32>
  // CHECK: repro.add %[[A]], %[[B]] {{.*}} -> tensor<?x5xf32, #repro.dims<"seq", "">>
  %0 = onnx.node "Gemm"(%x, %v, %c) {name = "a", domain = "", version = 13 : i64, params = {transB = 1 : i64, alpha = 0.5 : f32, beta = 2.0 : f32}} : (tensor<?x6xf32, #repro.dims<"seq", "">>, tensor<5x6xf32>, tensor<5xf32>) -> !onnx.unknown
  // CHECK: %[[T:.*]] = repro.matmul %arg1, %w {numerics = "fp32-1", trans_a = 1 : i64, trans_b = 0 : i64
  // CHECK-NEXT: repro.add %[[T]], %arg5 {{.*}} -> tensor<?x5xf32, #repro.dims<"seq", "">>
  %1 = onnx.node "Gemm"(%y, %w, %rows) {name = "b", domain = "", version = 13 : i64, params = {transA = 1 : i64}} : (tensor<6x?xf32, #repro.dims<"", "seq">>, tensor<6x5xf32>, tensor<?x1xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  // CHECK: %[[BOTH:.*]] = repro.matmul %arg1, %v {numerics = "fp32-1", trans_a = 1 : i64, trans_b = 1 : i64
  // CHECK: repro.add %[[BOTH]], %arg4 {{.*}} -> tensor<?x5xf32, #repro.dims<"seq", "">>
  %2 = onnx.node "Gemm"(%y, %v, %one) {name = "c", domain = "", version = 13 : i64, params = {transA = 1 : i64, transB = 1 : i64}} : (tensor<6x?xf32, #repro.dims<"", "seq">>, tensor<5x6xf32>, tensor<f32>) -> !onnx.unknown
  // CHECK: repro.matmul %arg2, %arg3 {{.*}} -> tensor<2x3x?x5xf32, #repro.dims<"", "", "seq", "">>
  %3 = onnx.node "MatMul"(%m, %n) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<2x1x?x6xf32, #repro.dims<"", "", "seq", "">>, tensor<3x6x5xf32>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// Memory: past and present leave the ports and become the operation's state.
// CHECK-LABEL: func.func @memory
// CHECK-SAME: (%arg0: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "q"}, %arg1: tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "angles"})
// CHECK-SAME: -> (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "y"}) {
func.func @memory(%q: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "q"},
                  %pk: tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past.3.key"},
                  %pv: tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past.3.value"},
                  %k: tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "angles"})
    -> (!onnx.unknown {onnx.name = "y"}, !onnx.unknown {onnx.name = "present.3.key"}, !onnx.unknown {onnx.name = "present.3.value"}) {
  %none = onnx.absent
  // CHECK: %[[Y:.*]] = repro.attention %arg0, %arg1, %arg1 {causal = 1 : i64, kv_heads = 1 : i64, numerics = "attention-1", q_heads = 2 : i64, scale = 5.000000e-01 : f32, state = "past.3", version = 1 : i64}
  %0:3 = onnx.node "Attention"(%q, %k, %k, %none, %pk, %pv)
      {name = "a", domain = "", version = 23 : i64, params = {is_causal = 1 : i64, q_num_heads = 2 : i64, kv_num_heads = 1 : i64}}
      : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, !onnx.absent, tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">>, tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">>)
      -> (!onnx.unknown, !onnx.unknown, !onnx.unknown)
  // CHECK: return %[[Y]] : tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>
  return %0#0, %0#1, %0#2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// Past and present as tensors: joined, and the last query stands at the last key. Here another node reads what is returned, there is a mask.
// CHECK-LABEL: func.func @tensors
func.func @tensors(%q: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, %k: tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, %seen: tensor<?x?xi1, #repro.dims<"seq", "past+seq">>,
                   %pk: tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past.key"}, %pv: tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past.value"})
    -> (!onnx.unknown {onnx.name = "y"}, !onnx.unknown {onnx.name = "present.key"}, !onnx.unknown {onnx.name = "present.value"}, !onnx.unknown {onnx.name = "z"}) {
  %none = onnx.absent
  // CHECK: %[[K:.*]] = repro.concat %arg3, %{{.*}} {axis = 2 : i64, {{.*}} -> tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past+seq", "">>
  // CHECK: %[[V:.*]] = repro.concat %arg4, %{{.*}} {axis = 2 : i64
  // CHECK: %[[Q:.*]] = repro.transpose %{{.*}} {{.*}} -> tensor<?x2x?x4xf32, #repro.dims<"batch", "", "seq", "">>
  // CHECK: %[[N:.*]] = repro.expand %{{.*}} -> tensor<?xi64, #repro.dims<"batch">>
  // CHECK: %[[A:.*]] = repro.attention %[[Q]], %[[K]], %[[V]], %[[N]] {causal = 1 : i64, heads_first = 1 : i64, kv_heads = 1 : i64, lengths = 1 : i64
  // CHECK-NOT: state
  %0:3 = onnx.node "Attention"(%q, %k, %k, %none, %pk, %pv)
      {name = "a", domain = "", version = 23 : i64, params = {is_causal = 1 : i64, q_num_heads = 2 : i64, kv_num_heads = 1 : i64}}
      : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, !onnx.absent, tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">>, tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown)
  %1 = onnx.node "Exp"(%0#1) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.attention %{{.*}}, %{{.*}}, %{{.*}}, %arg2 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 1 : i64, mask = 1 : i64
  %2 = onnx.node "Attention"(%0#0, %k, %k, %seen, %pk, %pv)
      {name = "c", domain = "", version = 23 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 1 : i64}}
      : (!onnx.unknown, tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?xi1, #repro.dims<"seq", "past+seq">>, tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">>, tensor<?x1x?x4xf32, #repro.dims<"batch", "", "past", "">>) -> !onnx.unknown
  return %2, %0#1, %0#2, %1 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// com.microsoft's operand order, heads by the tables' width; heads first.
// CHECK-LABEL: func.func @rotary
func.func @rotary(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, %at: tensor<?x?xi64, #repro.dims<"batch", "seq">>, %t: tensor<100x2xf32>, %y: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "seq", "">>, %a: tensor<?x?x2xf32, #repro.dims<"batch", "seq", "">>)
    -> (!onnx.unknown, !onnx.unknown) {
  // CHECK: %[[C:.*]] = repro.gather %arg2, %arg1
  // CHECK: %[[S:.*]] = repro.gather %arg2, %arg1
  // CHECK: repro.rope %arg0, %[[C]], %[[S]] {interleaved = 0 : i64, num_heads = 2 : i64, numerics = "ieee", rotary_dim = 0 : i64, version = 1 : i64}
  %0 = onnx.node "RotaryEmbedding"(%x, %at, %t, %t) {name = "a", domain = "com.microsoft", version = 1 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?xi64, #repro.dims<"batch", "seq">>, tensor<100x2xf32>, tensor<100x2xf32>) -> !onnx.unknown
  // CHECK: repro.rope %arg3, %arg4, %arg4 {heads_first = 1 : i64, interleaved = 0 : i64, num_heads = 2 : i64, numerics = "ieee", rotary_dim = 0 : i64, version = 1 : i64}
  %1 = onnx.node "RotaryEmbedding"(%y, %a, %a) {name = "b", domain = "", version = 23 : i64, params = {}} : (tensor<?x2x?x4xf32, #repro.dims<"batch", "", "seq", "">>, tensor<?x?x2xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x2xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  return %0, %1 : !onnx.unknown, !onnx.unknown
}

// -----

// What attention takes beside q, k and v; absent attributes stay absent, so that plans made before stay what they are.
// CHECK-LABEL: func.func @attention
// CHECK: repro.attention %arg0, %arg1, %arg2, %arg3 {causal = 0 : i64, heads_first = 1 : i64, kv_heads = 1 : i64, mask = 1 : i64, numerics = "attention-1", q_heads = 2 : i64, scale = 5.000000e-01 : f32, softcap = 5.000000e+01 : f32, version = 1 : i64}
// CHECK-SAME: -> tensor<?x2x?x6xf32, #repro.dims<"batch", "", "seq", "">>
// CHECK: repro.attention %arg0, %arg1, %arg2, %arg4, %arg5 {causal = 1 : i64, heads_first = 1 : i64, kv_heads = 1 : i64, left = 9 : i64, lengths = 1 : i64, mask = 1 : i64, numerics = "attention-1", q_heads = 2 : i64, right = 0 : i64, scale = 2.500000e-01 : f32, version = 1 : i64}
// CHECK: repro.attention %arg6, %arg6, %arg6, %arg7 {causal = 1 : i64, kv_heads = 2 : i64, mask = 1 : i64, numerics = "attention-1", q_heads = 2 : i64, scale = 5.000000e-01 : f32, version = 1 : i64}
func.func @attention(%q: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "seq", "">>, %k: tensor<?x1x300x4xf32, #repro.dims<"batch", "", "", "">>, %v: tensor<?x1x300x6xf32, #repro.dims<"batch", "", "", "">>, %m: tensor<?x300xi1, #repro.dims<"seq", "">>, %s: tensor<?x2x1x200xf32, #repro.dims<"batch", "", "", "">>,
                     %n: tensor<?xi64, #repro.dims<"batch">>, %x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, %b: tensor<1x1x?x?xf32, #repro.dims<"", "", "seq", "seq">>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %none = onnx.absent
  %0 = onnx.node "Attention"(%q, %k, %v, %m) {name = "a", domain = "", version = 23 : i64, params = {softcap = 5.0e+01 : f32}} : (tensor<?x2x?x4xf32, #repro.dims<"batch", "", "seq", "">>, tensor<?x1x300x4xf32, #repro.dims<"batch", "", "", "">>, tensor<?x1x300x6xf32, #repro.dims<"batch", "", "", "">>, tensor<?x300xi1, #repro.dims<"seq", "">>) -> !onnx.unknown
  %1 = onnx.node "Attention"(%q, %k, %v, %s, %none, %none, %n) {name = "b", domain = "", version = 25 : i64, params = {is_causal = 1 : i64, left_window_size = 9 : i64, right_window_size = 0 : i64, scale = 2.5e-01 : f32}} : (tensor<?x2x?x4xf32, #repro.dims<"batch", "", "seq", "">>, tensor<?x1x300x4xf32, #repro.dims<"batch", "", "", "">>, tensor<?x1x300x6xf32, #repro.dims<"batch", "", "", "">>, tensor<?x2x1x200xf32, #repro.dims<"batch", "", "", "">>, !onnx.absent, !onnx.absent, tensor<?xi64, #repro.dims<"batch">>) -> !onnx.unknown
  %2 = onnx.node "MultiHeadAttention"(%x, %x, %x, %none, %none, %b) {name = "c", domain = "com.microsoft", version = 1 : i64, params = {num_heads = 2 : i64, unidirectional = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, !onnx.absent, !onnx.absent, tensor<1x1x?x?xf32, #repro.dims<"", "", "seq", "seq">>) -> !onnx.unknown
  return %0, %1, %2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @angles
func.func @angles(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, %c: tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown {
  // CHECK: repro.rope %arg0, %arg1, %arg1 {interleaved = 1 : i64, num_heads = 2 : i64, numerics = "ieee", rotary_dim = 2 : i64, version = 1 : i64}
  %0 = onnx.node "RotaryEmbedding"(%x, %c, %c)
      {name = "a", domain = "", version = 23 : i64, params = {num_heads = 2 : i64, interleaved = 1 : i64, rotary_embedding_dim = 2 : i64}}
      : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x1xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  return %0 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @tables
func.func @tables(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, %at: tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> !onnx.unknown {
  %c = onnx.weight "c" {file = "w", offset = 0 : i64, length = 128 : i64} : tensor<16x2xf32>
  %s = onnx.weight "s" {file = "w", offset = 128 : i64, length = 128 : i64} : tensor<16x2xf32>
  // CHECK: %[[C:.*]] = repro.gather %c, %arg1 {{.*}} -> tensor<?x?x2xf32, #repro.dims<"batch", "seq", "">>
  // CHECK: %[[S:.*]] = repro.gather %s, %arg1
  // CHECK: repro.rope %arg0, %[[C]], %[[S]] {interleaved = 0 : i64, num_heads = 2 : i64, numerics = "ieee", rotary_dim = 0 : i64
  %0 = onnx.node "RotaryEmbedding"(%x, %c, %s, %at) {name = "a", domain = "", version = 23 : i64, params = {num_heads = 2 : i64}}
      : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> !onnx.unknown
  return %0 : !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @normalizations
func.func @normalizations(%x: tensor<?x6x4xf32, #repro.dims<"batch", "", "">>) -> !onnx.unknown {
  %w6 = onnx.weight "w6" {file = "w", offset = 0 : i64, length = 24 : i64} : tensor<6xf32>
  %w4 = onnx.weight "w4" {file = "w", offset = 24 : i64, length = 16 : i64} : tensor<4xf32>
  %w24 = onnx.weight "w24" {file = "w", offset = 40 : i64, length = 96 : i64} : tensor<6x4xf32>
  // CHECK: repro.layernorm %arg0, %w4 {epsilon = 9.99999974E-6 : f32, numerics = "row-1", version = 1 : i64} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<4xf32>) -> tensor<?x6x4xf32, #repro.dims<"batch", "", "">>
  %0 = onnx.node "LayerNormalization"(%x, %w4) {name = "a", domain = "", version = 17 : i64, params = {}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<4xf32>) -> !onnx.unknown
  // CHECK: repro.layernorm %{{.*}}, %w24, %w24 {epsilon = 1.250000e-01 : f32
  %1 = onnx.node "LayerNormalization"(%0, %w24, %w24) {name = "b", domain = "", version = 23 : i64, params = {axis = 1 : i64, epsilon = 0.125 : f32}} : (!onnx.unknown, tensor<6x4xf32>, tensor<6x4xf32>) -> !onnx.unknown
  // CHECK: repro.groupnorm %{{.*}}, %w6, %w6 {epsilon = 9.99999974E-6 : f32, groups = 3 : i64, numerics = "row-1"
  %2 = onnx.node "GroupNormalization"(%1, %w6, %w6) {name = "c", domain = "", version = 21 : i64, params = {num_groups = 3 : i64}} : (!onnx.unknown, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  // CHECK: repro.groupnorm %{{.*}}, %w6, %w6 {epsilon = 9.99999974E-6 : f32, groups = 6 : i64
  %3 = onnx.node "InstanceNormalization"(%2, %w6, %w6) {name = "d", domain = "", version = 22 : i64, params = {}} : (!onnx.unknown, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  // CHECK: repro.batchnorm %{{.*}}, %w6, %w6, %w6, %w6 {epsilon = 9.99999974E-6 : f32, numerics = "ieee"
  %4 = onnx.node "BatchNormalization"(%3, %w6, %w6, %w6, %w6) {name = "e", domain = "", version = 15 : i64, params = {momentum = 0.5 : f32, training_mode = 0 : i64}} : (!onnx.unknown, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  return %4 : !onnx.unknown
}

// -----

// Before opset 21 scale and bias have an element for each group: repeated for each of its channels.
// CHECK-LABEL: func.func @groups
func.func @groups(%x: tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, %w: tensor<3xf32>, %b: tensor<3xf32>) -> !onnx.unknown {
  // CHECK: %[[W1:.*]] = repro.reshape %arg1 {{.*}} -> tensor<3x1xf32>
  // CHECK: %[[W2:.*]] = repro.expand %[[W1]] {{.*}} -> tensor<3x2xf32>
  // CHECK: %[[W:.*]] = repro.reshape %[[W2]] {{.*}} -> tensor<6xf32>
  // CHECK: %[[B2:.*]] = repro.expand
  // CHECK: %[[B:.*]] = repro.reshape %[[B2]] {{.*}} -> tensor<6xf32>
  // CHECK: repro.groupnorm %arg0, %[[W]], %[[B]] {epsilon = 9.99999974E-6 : f32, groups = 3 : i64
  %0 = onnx.node "GroupNormalization"(%x, %w, %b) {name = "a", domain = "", version = 18 : i64, params = {num_groups = 3 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<3xf32>, tensor<3xf32>) -> !onnx.unknown
  return %0 : !onnx.unknown
}

// -----

// Axes: an operand or an attribute, by opset; ascending and never negative afterwards.
// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %axes = onnx.weight "axes" {file = "", offset = 0 : i64, length = 16 : i64, data = "ffffffffffffffff0000000000000000"} : tensor<2xi64>
  // CHECK: repro.reduce_sum %arg0 {axes = array<i64: 0, 2>, keepdims = 1 : i64, numerics = "row-1", version = 1 : i64} : {{.*}} -> tensor<1x?x1xf32, #repro.dims<"", "seq", "">>
  %0 = onnx.node "ReduceSum"(%x, %axes) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>, tensor<2xi64>) -> !onnx.unknown
  // CHECK: repro.reduce_mean %arg0 {axes = array<i64: 1>, keepdims = 0 : i64, {{.*}} -> tensor<?x6xf32, #repro.dims<"batch", "">>
  %1 = onnx.node "ReduceMean"(%x) {name = "b", domain = "", version = 17 : i64, params = {axes = array<i64: -2>, keepdims = 0 : i64}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // CHECK: repro.reduce_l2 %arg0 {axes = array<i64: 0, 1, 2>, keepdims = 0 : i64, {{.*}} -> tensor<f32>
  %2 = onnx.node "ReduceL2"(%x) {name = "c", domain = "", version = 18 : i64, params = {keepdims = 0 : i64}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // CHECK: repro.argmin %arg0 {axis = 1 : i64, numerics = "order", select_last = 1 : i64, version = 1 : i64} : {{.*}} -> tensor<?x6xi64, #repro.dims<"batch", "">>
  // CHECK: repro.reshape {{.*}} -> tensor<?x1x6xi64, #repro.dims<"batch", "", "">>
  %3 = onnx.node "ArgMin"(%x) {name = "d", domain = "", version = 13 : i64, params = {axis = 1 : i64, select_last_index = 1 : i64}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // CHECK-NOT: repro.reduce_max
  %4 = onnx.node "ReduceMax"(%x) {name = "e", domain = "", version = 20 : i64, params = {noop_with_empty_axes = 1 : i64}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // CHECK: repro.reduce_prod
  %5 = onnx.node "ReduceProd"(%4, %axes) {name = "f", domain = "", version = 20 : i64, params = {noop_with_empty_axes = 1 : i64}} : (!onnx.unknown, tensor<2xi64>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @along
func.func @along(%x: tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>, %i: tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %axis = onnx.weight "axis" {file = "", offset = 0 : i64, length = 8 : i64, data = "ffffffffffffffff"} : tensor<i64>
  // CHECK: repro.softmax %arg0 {axis = 1 : i64, numerics = "row-1", version = 1 : i64}
  %0 = onnx.node "Softmax"(%x) {name = "a", domain = "", version = 13 : i64, params = {axis = -2 : i64}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  // CHECK: repro.log_softmax %{{.*}} {axis = 2 : i64,
  %1 = onnx.node "LogSoftmax"(%0) {name = "b", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.cumsum %arg1 {axis = 1 : i64, exclusive = 1 : i64, numerics = "row-1", reverse = 0 : i64, version = 1 : i64} : {{.*}} -> tensor<?x?xi64, #repro.dims<"batch", "seq">>
  %2 = onnx.node "CumSum"(%i, %axis) {name = "c", domain = "", version = 14 : i64, params = {exclusive = 1 : i64}} : (tensor<?x?xi64, #repro.dims<"batch", "seq">>, tensor<i64>) -> !onnx.unknown
  // CHECK: repro.cumprod %arg0 {axis = 2 : i64, exclusive = 0 : i64, numerics = "row-1", reverse = 1 : i64
  %3 = onnx.node "CumProd"(%x, %axis) {name = "d", domain = "", version = 26 : i64, params = {reverse = 1 : i64}} : (tensor<?x?x6xf32, #repro.dims<"batch", "seq", "">>, tensor<i64>) -> !onnx.unknown
  return %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @first
func.func @first(%x: tensor<?x6xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %k = onnx.weight "k" {file = "", offset = 0 : i64, length = 8 : i64, data = "0200000000000000"} : tensor<1xi64>
  // CHECK: %[[I:.*]] = repro.topk %arg0 {axis = 1 : i64, k = 2 : i64, largest = 0 : i64, numerics = "order", version = 1 : i64} : {{.*}} -> tensor<?x2xi64, #repro.dims<"seq", "">>
  // CHECK: %[[V:.*]] = repro.gather_elements %arg0, %[[I]] {axis = 1 : i64, {{.*}} -> tensor<?x2xf32, #repro.dims<"seq", "">>
  // CHECK: return %[[V]], %[[I]]
  %0:2 = onnx.node "TopK"(%x, %k) {name = "a", domain = "", version = 11 : i64, params = {largest = 0 : i64}} : (tensor<?x6xf32, #repro.dims<"seq", "">>, tensor<1xi64>) -> (!onnx.unknown, !onnx.unknown)
  return %0#0, %0#1 : !onnx.unknown, !onnx.unknown
}

// -----

// Statistics of layers as further results; sums with what is skipped; weights of several dimensions.
// CHECK-LABEL: func.func @statistics
func.func @statistics(%x: tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, %skip: tensor<6x4xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %none = onnx.absent
  %w = onnx.weight "w" {file = "w", offset = 0 : i64, length = 16 : i64} : tensor<4xf32>
  %w24 = onnx.weight "w24" {file = "w", offset = 16 : i64, length = 96 : i64} : tensor<6x4xf32>
  // CHECK: %[[Y:.*]] = repro.layernorm %arg0, %w24
  // CHECK: %[[MEAN:.*]] = repro.reduce_mean %arg0 {axes = array<i64: 1, 2>, keepdims = 1 : i64, {{.*}} -> tensor<?x1x1xf32, #repro.dims<"batch", "", "">>
  // CHECK: %[[V:.*]] = repro.reduce_var %arg0 {axes = array<i64: 1, 2>, correction = 0 : i64, keepdims = 1 : i64
  // CHECK: %[[S:.*]] = repro.add %[[V]]
  // CHECK: %[[R:.*]] = repro.sqrt %[[S]]
  // CHECK: %[[I:.*]] = repro.reciprocal %[[R]]
  %0:3 = onnx.node "LayerNormalization"(%x, %w24) {name = "a", domain = "", version = 17 : i64, params = {axis = 1 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6x4xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown)
  // CHECK: %[[SUM:.*]] = repro.add %[[Y]], %arg1
  // CHECK: %[[BIASED:.*]] = repro.add %[[SUM]], %w
  // CHECK: repro.layernorm %[[BIASED]], %w {epsilon = 9.99999996E-13 : f32
  %1:4 = onnx.node "SkipLayerNormalization"(%0#0, %skip, %w, %none, %w) {name = "b", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown, tensor<6x4xf32>, tensor<4xf32>, !onnx.absent, tensor<4xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown)
  // CHECK: %[[MORE:.*]] = repro.add
  // CHECK: repro.rmsnorm %[[MORE]], %w
  %2:4 = onnx.node "SkipSimplifiedLayerNormalization"(%1#0, %1#3, %w) {name = "c", domain = "com.microsoft", version = 1 : i64, params = {}} : (!onnx.unknown, !onnx.unknown, tensor<4xf32>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown)
  // CHECK: %[[Z:.*]] = repro.rmsnorm %{{.*}}, %w24
  %3 = onnx.node "RMSNormalization"(%2#0, %w24) {name = "d", domain = "", version = 23 : i64, params = {axis = 1 : i64}} : (!onnx.unknown, tensor<6x4xf32>) -> !onnx.unknown
  // CHECK: return %[[Z]], %[[MEAN]], %[[I]], %[[BIASED]]
  return %3, %0#1, %0#2, %1#3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @composed
func.func @composed(%x: tensor<?x3x4x5xf32, #repro.dims<"batch", "", "", "">>, %i: tensor<?x6xi32, #repro.dims<"batch", "">>, %b: tensor<?x6xi1, #repro.dims<"batch", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 8 : i64, data = "0100000000000000"} : tensor<1xi64>
  // CHECK: %[[N:.*]] = repro.reduce_l2 %arg0 {axes = array<i64: 3>, keepdims = 1 : i64
  // CHECK: %[[E:.*]] = repro.equal %[[N]]
  // CHECK: %[[D:.*]] = repro.where %[[E]]
  // CHECK: %[[A:.*]] = repro.div %arg0, %[[D]]
  %0 = onnx.node "LpNormalization"(%x) {name = "a", domain = "", version = 22 : i64, params = {}} : (tensor<?x3x4x5xf32, #repro.dims<"batch", "", "", "">>) -> !onnx.unknown
  // CHECK: repro.reduce_l1 %[[A]] {axes = array<i64: 1>
  %1 = onnx.node "LpNormalization"(%0) {name = "b", domain = "", version = 1 : i64, params = {axis = 1 : i64, p = 1 : i64}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.reduce_mean %[[B:.*]] {axes = array<i64: 0, 2, 3>
  // CHECK: %[[C:.*]] = repro.sub %[[B]]
  // CHECK: repro.reduce_std %[[B]] {axes = array<i64: 0, 2, 3>, correction = 0 : i64
  // CHECK: repro.add
  // CHECK: repro.div %[[C]]
  %2 = onnx.node "MeanVarianceNormalization"(%1) {name = "c", domain = "", version = 13 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.hardmax {{.*}} {axis = 1 : i64, numerics = "order", version = 1 : i64}
  %3 = onnx.node "Hardmax"(%2) {name = "d", domain = "", version = 13 : i64, params = {axis = -3 : i64}} : (!onnx.unknown) -> !onnx.unknown
  // CHECK: repro.reduce_sum %arg1 {{.*}} -> tensor<?xi32, #repro.dims<"batch">>
  %4 = onnx.node "ReduceSum"(%i, %one) {name = "e", domain = "", version = 13 : i64, params = {keepdims = 0 : i64}} : (tensor<?x6xi32, #repro.dims<"batch", "">>, tensor<1xi64>) -> !onnx.unknown
  // CHECK: repro.reduce_max %arg2 {{.*}} -> tensor<?x1xi1, #repro.dims<"batch", "">>
  %5 = onnx.node "ReduceMax"(%b, %one) {name = "f", domain = "", version = 20 : i64, params = {}} : (tensor<?x6xi1, #repro.dims<"batch", "">>, tensor<1xi64>) -> !onnx.unknown
  return %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}
