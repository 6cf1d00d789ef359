// The plan of a module: kernel calls in order, weights hashed (here SHA-256 of the four bytes of 1.0f), memory as
// states, buffers shared by values that are never alive together. The text of the stored weights reads again.
// RUN: %plan "%s" | %check
// RUN: %plan "%s" > "%t.a" && %plan "%s" > "%t.b" && diff "%t.a" "%t.b"
// RUN: %store "%s" > "%t.c" && %check --check-prefix=STORED < "%t.c" && %opt "%t.c" | diff - "%t.c"

// CHECK: invar-plan 1
// CHECK-NEXT: numerics "invar-1"
// CHECK: symbol batch
// CHECK-NEXT: symbol seq
// CHECK-NEXT: weight w0 "one" f32 [1] sha256 e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c
// CHECK-NEXT: state s0 "past_0"
// CHECK-NEXT: input v0: f32 [batch, seq, 8] "x"
// CHECK-NEXT: node v1: f32 [batch, seq, 8] = add.1(v0, w0) {numerics="ieee"}
// CHECK-NEXT: node v2: f32 [batch, seq, 8] = attention.1(v1, v1, v1) state s0 {causal=1, kv_heads=2, numerics="attention-1", q_heads=2, scale=0x3f000000}
// CHECK-NEXT: node v3: f32 [batch, seq, 8] = sin.1(v2) {numerics="correctly-rounded"}
// CHECK-NEXT: output v3 "y"
// CHECK-NEXT: places
// CHECK-NEXT: place w0 "constants.bin" offset 0 length 4
// CHECK-NEXT: slots 2
// CHECK-NEXT: slot v1 0
// CHECK-NEXT: slot v2 1
// CHECK-NEXT: slot v3 0
// CHECK-NEXT: end
// STORED: %one = repro.weight "one" {file = "constants.bin", length = 4 : i64, offset = 0 : i64, sha256 = "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c"} : tensor<1xf32>
func.func @main(%x: tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "x"},
                %pk: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past_0_key"},
                %pv: tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">> {onnx.name = "past_0_value"})
    -> (!onnx.unknown {onnx.name = "y"}, !onnx.unknown {onnx.name = "k"}, !onnx.unknown {onnx.name = "v"}) {
  %none = onnx.absent
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<1xf32>
  %0 = onnx.node "Add"(%x, %one) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x8xf32, #repro.dims<"batch", "seq", "">>, tensor<1xf32>) -> !onnx.unknown
  %1:3 = onnx.node "Attention"(%0, %0, %0, %none, %pk, %pv) {name = "b", domain = "", version = 23 : i64, params = {is_causal = 1 : i64, q_num_heads = 2 : i64, kv_num_heads = 2 : i64}} : (!onnx.unknown, !onnx.unknown, !onnx.unknown, !onnx.absent, tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">>, tensor<?x2x?x4xf32, #repro.dims<"batch", "", "past", "">>) -> (!onnx.unknown, !onnx.unknown, !onnx.unknown)
  %2 = onnx.node "Sin"(%1#0) {name = "c", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  return %2, %1#1, %1#2 : !onnx.unknown, !onnx.unknown, !onnx.unknown
}
