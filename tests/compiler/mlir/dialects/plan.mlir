// Kernel calls in order, weights hashed (here SHA-256 of the four bytes of 1.0f), memory as states, buffers shared by
// values that are never alive together.
// RUN: %plan "%s" | %check
// RUN: %plan "%s" > "%t.a" && %plan "%s" > "%t.b" && diff "%t.a" "%t.b" && %opt "%t.a" | diff - "%t.a"

// CHECK-LABEL: func.func @main
// CHECK-SAME: attributes {plan.numerics = "invar-1"}
func.func @main(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "x"},
                %pk: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past_0_key"},
                %pv: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past_0_value"})
    -> (!onnx.unknown {onnx.name = "y"}, !onnx.unknown {onnx.name = "k"}, !onnx.unknown {onnx.name = "v"}) {
  %none = onnx.absent
  // CHECK: %one = plan.weight "one" {file = "constants.bin", length = 4 : i64, offset = 0 : i64, sha256 = "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c"} : tensor<1xf32>
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<1xf32>
  // CHECK: %[[A:.*]] = plan.call "add"(%arg0, %one) {params = {numerics = "ieee"}, slot = 0 : i64, version = 1 : i64}
  %0 = onnx.node "Add"(%x, %one) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xf32>) -> !onnx.unknown
  // CHECK: plan.state "past_0"
  // CHECK: %[[B:.*]] = plan.call "attention"(%[[A]], %[[A]], %[[A]]) {params = {causal = 1 : i64, kv_heads = 2 : i64, numerics = "attention-1", q_heads = 2 : i64, scale = 5.000000e-01 : f32}, slot = 1 : i64, state = "past_0", version = 1 : i64}
  %1:3 = onnx.node "Attention"(%0, %0, %0, %none, %pk, %pv) {name = "b", domain = "", version = 23 : i64, params = {is_causal = 1 : i64, q_num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.absent, tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">>, tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown)
  // CHECK: plan.call "sin"(%[[B]]) {params = {numerics = "correctly-rounded"}, slot = 0 : i64
  %2 = onnx.node "Sin"(%1#0) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  return %2, %1#1, %1#2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}
