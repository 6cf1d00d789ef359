// Every node without a reproducible kernel is refused by name, and no other node.
// RUN: %not %lower "%s" --split-input-file 2>&1 | %check --implicit-check-not error:

// CHECK: error: Bernoulli (domain ai.onnx opset 23, node "a"): no reproducible kernel
// CHECK: error: Foo (domain com.example opset 1, node "c"): no reproducible kernel
// CHECK: error: Softmax (domain ai.onnx opset 11, node "d"): axis 7 is outside rank 2
func.func @list(%x: tensor<?x4xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown) {
  %0 = onnx.node "Bernoulli"(%x) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %1 = onnx.node "Sin"(%0) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %2 = onnx.node "Foo"(%1) {name = "c", domain = "com.example", version = 1 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  %3 = onnx.node "Softmax"(%x) {name = "d", domain = "", version = 11 : i64, params = {axis = 7 : i64}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %4 = onnx.node "Bar"(%x) {name = "dead", domain = "", version = 11 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %2, %3 : !onnx.unknown, !onnx.unknown
}

// -----

// CHECK: error: Sin (domain ai.onnx opset 99, node "new"): covered are opsets 7 to 28
// CHECK: error: Sin (domain ai.onnx opset 23, node "strange"): attribute "speed" is not covered
// CHECK: error: Sin (domain ai.onnx opset 23, node "body"): attribute "body" of kind graph is not covered
// CHECK: error: Add (domain ai.onnx opset 23, node "three"): operand 2 is not covered
// CHECK: error: Add (domain ai.onnx opset 23, node "one"): operand 1 is missing
// CHECK: error: Sin (domain ai.onnx opset 23, node "wide"): operand 0 is not of f32, nor a constant in the model file
// CHECK: error: Add (domain ai.onnx opset 23, node "shapes"): shapes [seq, 4] and [3] do not broadcast
// CHECK: error: MatMul (domain ai.onnx opset 23, node "inner"): inner dimensions: 4 and 3
// CHECK: error: Transpose (domain ai.onnx opset 23, node "turn"): perm is not a permutation of the operand's dimensions
// CHECK: error: Softmax (domain ai.onnx opset 23, node "beyond"): axis 7 is outside rank 2
// CHECK: error: Squeeze (domain ai.onnx opset 23, node "shape"): operand 1 is not a constant in the model file
// CHECK: error: Cast (domain ai.onnx opset 23, node "words"): element type 8 (TensorProto.DataType)
func.func @reasons(%x: tensor<?x4xf32, #repro.dims<"seq", "">>, %p: tensor<?x4xf32, #repro.dims<"past", "">>, %d: tensor<?x4xf64, #repro.dims<"seq", "">>, %r: tensor<3xf32>, %m: tensor<3x3xf32>, %i: tensor<1xi64>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %0 = onnx.node "Sin"(%x) {name = "new", domain = "", version = 99 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %1 = onnx.node "Sin"(%x) {name = "strange", domain = "", version = 23 : i64, params = {speed = 1 : i64}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %2 = onnx.node "Sin"(%x) {name = "body", domain = "", version = 23 : i64, params = {}, other_params = {body = "graph"}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %3 = onnx.node "Add"(%x, %x, %x) {name = "three", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %4 = onnx.node "Add"(%x) {name = "one", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %5 = onnx.node "Sin"(%d) {name = "wide", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf64, #repro.dims<"seq", "">>) -> !onnx.unknown
  %6 = onnx.node "Add"(%x, %r) {name = "shapes", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<3xf32>) -> !onnx.unknown
  %7 = onnx.node "Add"(%x, %p) {name = "symbols", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<?x4xf32, #repro.dims<"past", "">>) -> !onnx.unknown
  %8 = onnx.node "MatMul"(%x, %m) {name = "inner", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<3x3xf32>) -> !onnx.unknown
  %9 = onnx.node "Transpose"(%x) {name = "turn", domain = "", version = 23 : i64, params = {perm = array<i64: 1, 1>}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %10 = onnx.node "Softmax"(%x) {name = "axis", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %11 = onnx.node "Softmax"(%x) {name = "beyond", domain = "", version = 23 : i64, params = {axis = 7 : i64}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %12 = onnx.node "Squeeze"(%x, %i) {name = "shape", domain = "", version = 23 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<1xi64>) -> !onnx.unknown
  %13 = onnx.node "Cast"(%x) {name = "words", domain = "", version = 23 : i64, params = {to = 8 : i64}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13
    : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "order"): g_idx has the shape [39]
// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "three"): covered are 2, 4 and 8 bits
// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "block"): K and N are positive, block_size a power of two from 16 on
// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "inner"): the last dimension of operand 0 is not K = 64
// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "scales"): operand 2 has the shape [3] instead of [3, 2]
// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "zeros"): covered are zero points of uint8 and of the type of the scales
// CHECK: error: MatMulNBits (domain com.microsoft opset 1, node "value"): weights that are no constant of uint8
func.func @quantised(%x: tensor<?x40xf32, #repro.dims<"seq", "">>, %v: tensor<3x2x16xui8>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %b = onnx.weight "b" {file = "w", offset = 0 : i64, length = 96 : i64} : tensor<3x2x16xui8>
  %s = onnx.weight "s" {file = "w", offset = 96 : i64, length = 24 : i64} : tensor<3x2xf32>
  %r = onnx.weight "r" {file = "w", offset = 96 : i64, length = 12 : i64} : tensor<3xf32>
  %g = onnx.weight "g" {file = "w", offset = 120 : i64, length = 156 : i64} : tensor<39xi32>
  %none = onnx.absent
  %0 = onnx.node "MatMulNBits"(%x, %b, %s, %none, %g) {name = "order", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>, !onnx.absent, tensor<39xi32>) -> !onnx.unknown
  %1 = onnx.node "MatMulNBits"(%x, %b, %s) {name = "three", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 3 : i64, block_size = 32 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>) -> !onnx.unknown
  %2 = onnx.node "MatMulNBits"(%x, %b, %s) {name = "block", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 24 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>) -> !onnx.unknown
  %3 = onnx.node "MatMulNBits"(%x, %b, %s) {name = "inner", domain = "com.microsoft", version = 1 : i64, params = {K = 64 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>) -> !onnx.unknown
  %4 = onnx.node "MatMulNBits"(%x, %b, %r) {name = "scales", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3xf32>) -> !onnx.unknown
  %5 = onnx.node "MatMulNBits"(%x, %b, %s, %g) {name = "zeros", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>, tensor<39xi32>) -> !onnx.unknown
  %6 = onnx.node "MatMulNBits"(%x, %v, %s) {name = "value", domain = "com.microsoft", version = 1 : i64, params = {K = 40 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}} : (tensor<?x40xf32, #repro.dims<"seq", "">>, tensor<3x2x16xui8>, tensor<3x2xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5, %6 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK: error: Attention (domain ai.onnx opset 23, node "mask"): a mask whose columns cannot be shown to be the keys: seq and past+seq
// CHECK: error: Attention (domain ai.onnx opset 23, node "columns"): a mask whose columns cannot be shown to be the keys: 4 and seq
// CHECK: error: Attention (domain ai.onnx opset 23, node "wide")
// CHECK: error: Attention (domain ai.onnx opset 23, node "heads"): heads and sizes of queries, keys and values do not fit
// CHECK: error: Attention (domain ai.onnx opset 25, node "window"): left_window_size is -2
// CHECK: error: Attention (domain ai.onnx opset 23, node "scores")
// CHECK: error: GroupQueryAttention (domain com.microsoft opset 1, node "group"): seqlens_k is missing
// CHECK: error: MultiHeadAttention (domain com.microsoft opset 1, node "bias"): a bias of the projections: add it before the node
func.func @attention(%q: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, %m: tensor<?x?xf32, #repro.dims<"seq", "seq">>, %c: tensor<?x4xf32, #repro.dims<"seq", "">>, %r: tensor<3x?xf32, #repro.dims<"", "seq">>,
                     %ok: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "ok"}, %ov: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "ov"})
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %none = onnx.absent
  %0 = onnx.node "Attention"(%q, %q, %q, %m, %ok, %ov) {name = "mask", domain = "", version = 23 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?xf32, #repro.dims<"seq", "seq">>, tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">>, tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">>) -> !onnx.unknown
  %1 = onnx.node "Attention"(%q, %q, %q, %c) {name = "columns", domain = "", version = 23 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  %2 = onnx.node "Attention"(%q, %q, %q, %r) {name = "rows", domain = "", version = 24 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<3x?xf32, #repro.dims<"", "seq">>) -> !onnx.unknown
  %3 = onnx.node "Attention"(%q, %q, %q) {name = "wide", domain = "", version = 23 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, softmax_precision = 11 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %6 = onnx.node "Attention"(%q, %q, %q) {name = "heads", domain = "", version = 23 : i64, params = {q_num_heads = 3 : i64, kv_num_heads = 2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %7 = onnx.node "Attention"(%q, %q, %q) {name = "window", domain = "", version = 25 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, left_window_size = -2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %8:4 = onnx.node "Attention"(%q, %q, %q) {name = "scores", domain = "", version = 23 : i64, params = {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, qk_matmul_output_mode = 1 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown)
  %9 = onnx.node "GroupQueryAttention"(%q, %q, %q) {name = "group", domain = "com.microsoft", version = 1 : i64, params = {num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>) -> !onnx.unknown
  %10 = onnx.node "MultiHeadAttention"(%q, %q, %q, %c) {name = "bias", domain = "com.microsoft", version = 1 : i64, params = {num_heads = 2 : i64}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<?x4xf32, #repro.dims<"seq", "">>) -> !onnx.unknown
  return %0, %1, %2, %3, %6, %7, %8#3, %9, %10 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK: error: LayerNormalization (domain ai.onnx opset 23, node "scale"): a scale that does not have the dimensions from axis -2 on
// CHECK: error: LayerNormalization (domain ai.onnx opset 23, node "last"): a dimension of operand and scale: 4 and 6
// CHECK: error: GroupNormalization (domain ai.onnx opset 20, node "old"): operand 1 of shape [6] does not have an element for each of 3 groups
// CHECK: error: GroupNormalization (domain ai.onnx opset 23, node "groups"): 6 channels do not divide into 4 groups
// CHECK: error: InstanceNormalization (domain ai.onnx opset 23, node "open"): channels and scale: channels and 6 cannot be shown to be equal
// CHECK: error: BatchNormalization (domain ai.onnx opset 23, node "spatial"): attribute "spatial" is not covered
func.func @normalizations(%x: tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, %s: tensor<?x?x4xf32, #repro.dims<"batch", "channels", "">>, %w: tensor<6xf32>)
    -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %0 = onnx.node "LayerNormalization"(%x, %w) {name = "scale", domain = "", version = 23 : i64, params = {axis = -2 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6xf32>) -> !onnx.unknown
  %1 = onnx.node "LayerNormalization"(%x, %w) {name = "last", domain = "", version = 23 : i64, params = {}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6xf32>) -> !onnx.unknown
  %2 = onnx.node "GroupNormalization"(%x, %w, %w) {name = "old", domain = "", version = 20 : i64, params = {num_groups = 3 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  %3 = onnx.node "GroupNormalization"(%x, %w, %w) {name = "groups", domain = "", version = 23 : i64, params = {num_groups = 4 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  %4 = onnx.node "InstanceNormalization"(%s, %w, %w) {name = "open", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x4xf32, #repro.dims<"batch", "channels", "">>, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  %5 = onnx.node "BatchNormalization"(%x, %w, %w, %w, %w) {name = "spatial", domain = "", version = 23 : i64, params = {spatial = 0 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK: error: Gelu (domain ai.onnx opset 20, node "how"): attribute "approximate" is neither "none" nor "tanh"
// CHECK: error: BitShift (domain ai.onnx opset 11, node "where"): attribute "direction" is neither "LEFT" nor "RIGHT"
// CHECK: error: BitShift (domain ai.onnx opset 11, node "kind"): attribute "direction" is not a string
// CHECK: error: BitwiseAnd (domain ai.onnx opset 18, node "real"): elements of type f32 are not covered there
// CHECK: error: Pow (domain ai.onnx opset 15, node "narrow"): elements of type u8 are not covered there
// CHECK: error: Erf (domain ai.onnx opset 8, node "old"): covered are opsets 9 to
// CHECK: error: Celu (domain ai.onnx opset 12, node "beta"): attribute "beta" is not covered
func.func @elementwise(%x: tensor<4xf32>, %i: tensor<4xui8>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %0 = onnx.node "Gelu"(%x) {name = "how", domain = "", version = 20 : i64, params = {approximate = "erf"}} : (tensor<4xf32>) -> !onnx.unknown
  %1 = onnx.node "BitShift"(%i, %i) {name = "where", domain = "", version = 11 : i64, params = {}} : (tensor<4xui8>, tensor<4xui8>) -> !onnx.unknown
  %2 = onnx.node "BitShift"(%i, %i) {name = "kind", domain = "", version = 11 : i64, params = {direction = 1 : i64}} : (tensor<4xui8>, tensor<4xui8>) -> !onnx.unknown
  %3 = onnx.node "BitwiseAnd"(%x, %x) {name = "real", domain = "", version = 18 : i64, params = {}} : (tensor<4xf32>, tensor<4xf32>) -> !onnx.unknown
  %4 = onnx.node "Pow"(%i, %i) {name = "narrow", domain = "", version = 15 : i64, params = {}} : (tensor<4xui8>, tensor<4xui8>) -> !onnx.unknown
  %5 = onnx.node "Erf"(%x) {name = "old", domain = "", version = 8 : i64, params = {}} : (tensor<4xf32>) -> !onnx.unknown
  %6 = onnx.node "Celu"(%x) {name = "beta", domain = "", version = 12 : i64, params = {beta = 1.0 : f32}} : (tensor<4xf32>) -> !onnx.unknown
  return %0, %1, %2, %3, %4, %5, %6 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}
