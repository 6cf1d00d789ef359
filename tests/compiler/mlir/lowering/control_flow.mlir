// Nested graphs print and parse. Lowering unrolls them or makes them bodies of data-dependent control flow.
// RUN: %opt "%s" --split-input-file > "%t.once" && %opt "%t.once" --split-input-file > "%t.twice" && diff "%t.once" "%t.twice"
// RUN: %opt "%s" --pass-pipeline="builtin.module(onnx-to-repro,func.func(repro-fuse,repro-prepare-plan))" --split-input-file > "%t.repro" && %check < "%t.repro"
// RUN: %opt "%t.repro" --split-input-file | diff - "%t.repro"
// RUN: %plan "%s" --split-input-file > "%t.plan" && %check --check-prefix=PLAN < "%t.plan"

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

// -----

// The list grows, so its dimension has a name of its own within a step, and another one behind the loop; x stays what it is. A constant is in the body.
// CHECK-LABEL: func.func @body_1(%arg0: tensor<i64>, %arg1: tensor<?xf32, #repro.dims<"loop_0">>, %arg2: tensor<?xf32, #repro.dims<"n">>)
// CHECK-SAME: -> (tensor<i1>, tensor<?xf32, #repro.dims<"loop_0+1">>, tensor<?xf32, #repro.dims<"n">>) attributes {repro.body} {
// CHECK: repro.weight "one"
// CHECK: repro.concat %arg1
// CHECK: return
// CHECK-LABEL: func.func @main
// CHECK-NOT: repro.bind
// CHECK: %[[L:.*]]:2 = repro.flow "loop" [@body_1](%arg2, %{{.*}}, %arg1, %arg0) {carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<?xf32, #repro.dims<"k">>, tensor<?xf32, #repro.dims<"n">>) -> (tensor<?xf32, #repro.dims<"loop_1">>, tensor<?x?xf32, #repro.dims<"loop_2", "n">>)
// CHECK: repro.abs %[[L]]#0 {{.*}} -> tensor<?xf32, #repro.dims<"loop_1">>
// PLAN: body b0(
// PLAN: = concat.1(
// PLAN: give b0(
// PLAN: = loop.1(
func.func @main(%x: tensor<?xf32, #repro.dims<"n">> {onnx.name = "x"}, %list: tensor<?xf32, #repro.dims<"k">> {onnx.name = "list"}, %m: tensor<i64> {onnx.name = "m"}) -> (!onnx.unknown {onnx.name = "y"}, !onnx.unknown {onnx.name = "z"}) {
  %yes = onnx.weight "yes" {file = "", offset = 0 : i64, length = 1 : i64, data = "01"} : tensor<i1>
  %one = onnx.weight "one" {file = "", offset = 0 : i64, length = 4 : i64, data = "0000803f"} : tensor<1xf32>
  %0:2 = onnx.node "Loop"(%m, %yes, %list) {name = "n", domain = "", version = 23 : i64, params = {}, body_names = ["body"]}
      : (tensor<i64>, tensor<i1>, tensor<?xf32, #repro.dims<"k">>) -> (!onnx.unknown, !onnx.unknown) of {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %l: !onnx.unknown):
    %more = onnx.node "Concat"(%l, %one) {name = "c", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (!onnx.unknown, tensor<1xf32>) -> !onnx.unknown
    %e = onnx.node "Exp"(%x) {name = "e", domain = "", version = 23 : i64, params = {}} : (tensor<?xf32, #repro.dims<"n">>) -> !onnx.unknown
    onnx.yield %c, %more, %e : tensor<i1>, !onnx.unknown, !onnx.unknown
  }
  %1 = onnx.node "Abs"(%0#0) {name = "a", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  return %1, %0#1 : !onnx.unknown, !onnx.unknown
}

// -----

// Branches of different dimensions: one is run. Nobody reads the second loop.
// CHECK-LABEL: func.func @body_0(%arg0: tensor<?xf32, #repro.dims<"n">>)
// CHECK-LABEL: func.func @body_1(%arg0: tensor<?xf32, #repro.dims<"n">>)
// CHECK-LABEL: func.func @main
// CHECK: repro.flow "if" [@body_0, @body_1](%arg1, %arg0) {carried = 0 : i64} : {{.*}} -> tensor<?xf32, #repro.dims<"if_0">>
// CHECK-NOT: repro.flow
func.func @main(%x: tensor<?xf32, #repro.dims<"n">> {onnx.name = "x"}, %c: tensor<i1> {onnx.name = "c"}, %m: tensor<i64> {onnx.name = "m"}) -> (!onnx.unknown {onnx.name = "y"}) {
  %yes = onnx.weight "yes" {file = "", offset = 0 : i64, length = 1 : i64, data = "01"} : tensor<i1>
  %y = onnx.node "If"(%c) {name = "n", domain = "", version = 23 : i64, params = {}, body_names = ["then_branch", "else_branch"]}
      : (tensor<i1>) -> !onnx.unknown of {
    %t = onnx.node "Concat"(%x, %x) {name = "e", domain = "", version = 23 : i64, params = {axis = 0 : i64}} : (tensor<?xf32, #repro.dims<"n">>, tensor<?xf32, #repro.dims<"n">>) -> !onnx.unknown
    onnx.yield %t : !onnx.unknown
  }, {
    %t = onnx.node "Neg"(%x) {name = "m", domain = "", version = 23 : i64, params = {}} : (tensor<?xf32, #repro.dims<"n">>) -> !onnx.unknown
    onnx.yield %t : !onnx.unknown
  }
  %z = onnx.node "Loop"(%m, %yes) {name = "n", domain = "", version = 23 : i64, params = {}, body_names = ["body"]} : (tensor<i64>, tensor<i1>) -> !onnx.unknown of {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>):
    %e = onnx.node "Exp"(%y) {name = "e", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
    onnx.yield %go, %e : tensor<i1>, !onnx.unknown
  }
  %w = onnx.node "Neg"(%z) {name = "w", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown) -> !onnx.unknown
  return %y : !onnx.unknown
}
