// The onnx dialect represents any graph, and its text round-trips.
// RUN: %opt "%s" > "%t.once" && %opt "%t.once" > "%t.twice" && diff "%t.once" "%t.twice"
// RUN: %opt "%s" | %check

// CHECK-LABEL: func.func @main(%arg0: tensor<?x?xi64, #repro.dims<"batch", "seq">> {onnx.name = "ids"}
// CHECK-SAME: %arg1: !onnx.unknown {onnx.name = "x"}
func.func @main(%ids: tensor<?x?xi64, #repro.dims<"batch", "seq">> {onnx.name = "ids"},
                %x: !onnx.unknown {onnx.name = "x"}) -> (!onnx.unknown {onnx.name = "y"}) {
  // CHECK: %[[NONE:.*]] = onnx.absent
  %none = onnx.absent
  // CHECK: %a.weight = onnx.weight "a.weight" {file = "model.safetensors", length = 16 : i64, offset = 72 : i64} : tensor<2x2xf32>
  %0 = onnx.weight "a.weight" {file = "model.safetensors", offset = 72 : i64, length = 16 : i64} : tensor<2x2xf32>
  // CHECK: %inline = onnx.weight "inline" {data = "0000803f", file = "", length = 4 : i64, offset = 0 : i64} : tensor<1xf32>
  %1 = onnx.weight "inline" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<1xf32>
  // CHECK: onnx.weight "words" {{.*}} : tensor<3x!onnx.element<8>>
  %2 = onnx.weight "words" {file = "", offset = 0 : i64, length = 0 : i64} : tensor<3x!onnx.element<8>>
  // CHECK: %[[N:.*]]:2 = onnx.node "Anything"(%arg1, %[[NONE]], %arg0) {domain = "com.example", name = "n",
  // CHECK-SAME: other_params = {body = "graph"},
  // CHECK-SAME: params = {f = 9.99999974E-6 : f32, fs = array<f32: 1.000000e+00, 0xFF800000>, i = -1 : i64, is = array<i64: 1, 2>, s = "text", ss = ["a", "b"]},
  // CHECK-SAME: version = 3 : i64} : (!onnx.unknown, !onnx.absent, tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> (!onnx.unknown, !onnx.absent)
  %3, %4 = onnx.node "Anything"(%x, %none, %ids)
      {name = "n", domain = "com.example", version = 3 : i64, other_params = {body = "graph"},
       params = {i = -1 : i64, f = 9.99999974E-6 : f32, s = "text", is = array<i64: 1, 2>,
                 fs = array<f32: 1.0, 0xFF800000>, ss = ["a", "b"]}}
      : (!onnx.unknown, !onnx.absent, tensor<?x?xi64, #repro.dims<"batch", "seq">>) -> (!onnx.unknown, !onnx.absent)
  // CHECK: return %[[N]]#0 : !onnx.unknown
  return %3 : !onnx.unknown
}
