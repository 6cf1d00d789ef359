// Quantized integers and their scales.
// RUN: %lower "%s" --split-input-file | %check

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, %s: tensor<f32>, %z: tensor<i8>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %s6 = onnx.weight "s6" {file = "w", offset = 0 : i64, length = 24 : i64} : tensor<6xf32>
  %w = onnx.weight "w" {file = "w", offset = 24 : i64, length = 40 : i64} : tensor<4x10xi8>
  %sw = onnx.weight "sw" {file = "w", offset = 64 : i64, length = 48 : i64} : tensor<4x3xf32>
  %i = onnx.weight "i" {file = "w", offset = 112 : i64, length = 16 : i64} : tensor<4xi32>
  %none = onnx.weight "none" {file = "", offset = 0 : i64, length = 4 : i64, data = "00000000"} : tensor<i32>
  // CHECK: %[[Q:.*]] = repro.quantize_linear %arg0, %arg1, %arg2 {axis = 1 : i64, block = 0 : i64, numerics = "ieee", version = 1 : i64} : {{.*}} -> tensor<?x6x4xi8, #repro.dims<"batch", "", "">>
  %0 = onnx.node "QuantizeLinear"(%x, %s, %z) {name = "a", domain = "", version = 13 : i64, params = {}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<f32>, tensor<i8>) -> !onnx.unknown
  // CHECK: repro.quantize_linear %arg0, %s6 {axis = 1 : i64, {{.*}} -> tensor<?x6x4xui8, #repro.dims<"batch", "", "">>
  %1 = onnx.node "QuantizeLinear"(%x, %s6) {name = "b", domain = "", version = 21 : i64, params = {axis = 1 : i64, output_dtype = 2 : i64}} : (tensor<?x6x4xf32, #repro.dims<"batch", "", "">>, tensor<6xf32>) -> !onnx.unknown
  // CHECK: repro.dequantize_linear %w, %sw {axis = -1 : i64, block = 4 : i64, {{.*}} -> tensor<4x10xf32>
  %2 = onnx.node "DequantizeLinear"(%w, %sw) {name = "c", domain = "", version = 21 : i64, params = {axis = -1 : i64, block_size = 4 : i64}} : (tensor<4x10xi8>, tensor<4x3xf32>) -> !onnx.unknown
  // CHECK: repro.dequantize_linear %i, %arg1 {{{.*}} : (tensor<4xi32>, tensor<f32>) -> tensor<4xf32>
  %3 = onnx.node "DequantizeLinear"(%i, %s, %none) {name = "d", domain = "", version = 13 : i64, params = {}} : (tensor<4xi32>, tensor<f32>, tensor<i32>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<?x4xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown) {
  // CHECK: %[[LOW:.*]] = repro.reduce_min %arg0 {axes = array<i64: 0, 1>, keepdims = 0 : i64
  // CHECK: %[[HIGH:.*]] = repro.reduce_max %arg0 {axes = array<i64: 0, 1>, keepdims = 0 : i64
  // CHECK: %[[L:.*]] = repro.min %[[LOW]], %[[ZERO:[^ ]*]] {
  // CHECK: %[[H:.*]] = repro.max %[[HIGH]], %[[ZERO]] {
  // CHECK: %[[RANGE:.*]] = repro.sub %[[H]], %[[L]] {
  // CHECK: %[[S:.*]] = repro.div %[[RANGE]], {{.*}} -> tensor<f32>
  // CHECK: %[[STEPS:.*]] = repro.div %[[L]], %[[S]] {
  // CHECK: %[[PLACE:.*]] = repro.sub %[[ZERO]], %[[STEPS]] {
  // CHECK: %[[R:.*]] = repro.round %[[PLACE]] {
  // CHECK: %[[Z:.*]] = repro.cast %[[R]] {{.*}} -> tensor<ui8>
  // CHECK: %[[Q:.*]] = repro.quantize_linear %arg0, %[[S]], %[[Z]] {{.*}} -> tensor<?x4xui8, #repro.dims<"seq", "">>
  // CHECK: return %[[Q]], %[[S]], %[[Z]]
  %0:3 = onnx.node "DynamicQuantizeLinear"(%x) {name = "a", domain = "", version = 11 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown)
  return %0#0, %0#1, %0#2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}

// -----

// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<?x4xui8, #repro.dims<"seq", "">>, %x: tensor<?x4xf32, #repro.dims<"seq", "">>, %s: tensor<f32>, %z: tensor<ui8>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown) {
  %b = onnx.weight "b" {file = "w", offset = 0 : i64, length = 24 : i64} : tensor<4x6xi8>
  %sb = onnx.weight "sb" {file = "w", offset = 24 : i64, length = 24 : i64} : tensor<6xf32>
  %zb = onnx.weight "zb" {file = "w", offset = 48 : i64, length = 6 : i64} : tensor<6xi8>
  %bias = onnx.weight "bias" {file = "w", offset = 56 : i64, length = 24 : i64} : tensor<6xf32>
  %none = onnx.absent
  // CHECK: repro.matmul_integer %arg0, %b, %{{.*}}, %zb {numerics = "integer", version = 1 : i64} : (tensor<?x4xui8, #repro.dims<"seq", "">>, tensor<4x6xi8>, tensor<ui8>, tensor<6xi8>) -> tensor<?x6xi32, #repro.dims<"seq", "">>
  %0 = onnx.node "MatMulInteger"(%a, %b, %none, %zb) {name = "a", domain = "", version = 10 : i64, params = {}} : (tensor<?x4xui8, #repro.dims<"seq", "">>, tensor<4x6xi8>, !onnx.absent, tensor<6xi8>) -> !onnx.unknown
  // CHECK: %[[SUM:.*]] = repro.matmul_integer %arg0, %b, %arg3, %zb {
  // CHECK: %[[S:.*]] = repro.mul %arg2, %sb {
  // CHECK: %[[D:.*]] = repro.dequantize_linear %[[SUM]], %[[S]] {axis = -1 : i64, block = 0 : i64, {{.*}} -> tensor<?x6xf32, #repro.dims<"seq", "">>
  // CHECK: repro.quantize_linear %[[D]], %arg2, %arg3 {{.*}} -> tensor<?x6xui8, #repro.dims<"seq", "">>
  %1 = onnx.node "QLinearMatMul"(%a, %s, %z, %b, %sb, %zb, %s, %z) {name = "b", domain = "", version = 21 : i64, params = {}} : (tensor<?x4xui8, #repro.dims<"seq", "">>, tensor<f32>, tensor<ui8>, tensor<4x6xi8>, tensor<6xf32>, tensor<6xi8>, tensor<f32>, tensor<ui8>) -> !onnx.unknown
  // CHECK: %[[SUM2:.*]] = repro.matmul_integer %arg0, %b {
  // CHECK: %[[D2:.*]] = repro.dequantize_linear %[[SUM2]], %{{.*}} {axis = -1 : i64
  // CHECK: repro.add %[[D2]], %bias
  %2 = onnx.node "MatMulIntegerToFloat"(%a, %b, %s, %sb, %none, %none, %bias) {name = "c", domain = "com.microsoft", version = 1 : i64, params = {}} : (tensor<?x4xui8, #repro.dims<"seq", "">>, tensor<4x6xi8>, tensor<f32>, tensor<6xf32>, !onnx.absent, !onnx.absent, tensor<6xf32>) -> !onnx.unknown
  // CHECK: %[[Q:.*]] = repro.quantize_linear %arg1, %[[SQ:.*]], %[[ZQ:.*]] {{{.*}} -> tensor<?x4xui8, #repro.dims<"seq", "">>
  // CHECK: %[[SUM3:.*]] = repro.matmul_integer %[[Q]], %b, %[[ZQ]], %zb {
  // CHECK: %[[S3:.*]] = repro.mul %[[SQ]], %sb {
  // CHECK: repro.dequantize_linear %[[SUM3]], %[[S3]] {
  %3 = onnx.node "DynamicQuantizeMatMul"(%x, %b, %sb, %zb) {name = "d", domain = "com.microsoft", version = 1 : i64, params = {}} : (tensor<?x4xf32, #repro.dims<"seq", "">>, tensor<4x6xi8>, tensor<6xf32>, tensor<6xi8>) -> !onnx.unknown
  return %0, %1, %2, %3 : !onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.unknown
}
