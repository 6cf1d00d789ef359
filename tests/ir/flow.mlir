// Graphs within nodes print, read back, and are gone after conversion.
// RUN: %opt "%s" > "%t.once" && %opt "%t.once" > "%t.twice" && diff "%t.once" "%t.twice"
// RUN: %opt "%s" --pass-pipeline="builtin.module(func.func(onnx-to-repro,repro-fold,repro-settle))" | %check

// CHECK-LABEL: func.func @main
// CHECK-NOT: onnx.node
// CHECK-DAG: %[[E:.*]] = repro.exp %arg1
// CHECK-DAG: %[[N:.*]] = repro.neg %arg1
// CHECK: %[[Y:.*]] = repro.where %arg0, %[[E]], %[[N]]
// CHECK: return %[[Y]]
func.func @main(%c: tensor<i1> {onnx.name = "c"}, %x: tensor<3xf32> {onnx.name = "x"}) -> (tensor<3xf32> {onnx.name = "y"}) {
  %y = onnx.node "If"(%c) {name = "n", domain = "", version = 23 : i64, params = {}, body_names = ["then_branch", "else_branch"]}
      : (tensor<i1>) -> tensor<3xf32> of {
    %t = onnx.node "Exp"(%x) {name = "e", domain = "", version = 23 : i64, params = {}} : (tensor<3xf32>) -> tensor<3xf32>
    onnx.yield %t : tensor<3xf32>
  }, {
    %t = onnx.node "Neg"(%x) {name = "m", domain = "", version = 23 : i64, params = {}} : (tensor<3xf32>) -> tensor<3xf32>
    onnx.yield %t : tensor<3xf32>
  }
  return %y : tensor<3xf32>
}
