// The torch dialect: what a module of torch calls, of Invar's operations or of torch's own.
// RUN: %torch "%s" | %check
// RUN: %plain "%s" | %check --check-prefix=PLAIN
// RUN: %torch "%s" > "%t.a" && %opt "%t.a" | diff - "%t.a"
// RUN: %plain "%s" > "%t.a" && %opt "%t.a" | diff - "%t.a"

// CHECK-LABEL: func.func @main
// CHECK-SAME: attributes {torch.operations = "reproducible"}
// PLAIN-LABEL: func.func @main
// PLAIN-SAME: torch.operations = "plain"
func.func @main(%x: tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">> {onnx.name = "x"},
                %keep: tensor<?xi1, #repro.dims<"n">> {onnx.name = "keep"})
    -> (!onnx.unknown {onnx.name = "y"}, !onnx.unknown {onnx.name = "z"}) {
  // CHECK: %w = torch.weight "w" {file = "constants.bin", length = 32 : i64, offset = 0 : i64} : tensor<4x2xf32>
  %w = onnx.weight "w" {file = "", offset = 0 : i64, length = 32 : i64, data = "0000803f000000400000803f000000400000803f000000400000803f00000040"} : tensor<4x2xf32>
  // CHECK: %[[MATMUL:.*]] = torch.primitive "matmul"(%arg0, %w) {params = {trans_b = 0 : i64}} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<4x2xf32>) -> tensor<?x?x2xf32, #repro.dims<"batch", "seq", "">>
  // PLAIN: %[[MATMUL:.*]] = torch.expression "matmul" "torch.matmul({0}, {1})"(%arg0, %w) {params = {trans_b = 0 : i64}}
  %0 = onnx.node "MatMul"(%x, %w) {name = "a", domain = "", version = 23 : i64, params = {}} : (tensor<?x?x4xf32, #repro.dims<"batch", "seq", "">>, tensor<4x2xf32>) -> !onnx.unknown
  // The shape of a reshape does not follow from its operand: the call says it.
  // CHECK: %[[RESHAPE:.*]] = torch.primitive "reshape"(%[[MATMUL]]) {params = {}, typed} : {{.*}} -> tensor<?x2xf32, #repro.dims<"batch*seq", "">>
  // PLAIN: torch.expression "reshape" "{0}.reshape(({batch*seq}, 2))"(%[[MATMUL]]) {params = {}}
  %rows = onnx.weight "rows" {file = "", offset = 0 : i64, length = 16 : i64, data = "ffffffffffffffff0200000000000000"} : tensor<2xi64>
  %1 = onnx.node "Reshape"(%0, %rows) {name = "b", domain = "", version = 23 : i64, params = {}} : (!onnx.unknown, tensor<2xi64>) -> !onnx.unknown
  // A size that a value decides.
  // CHECK: torch.size "{{.*}}" = %{{.*}}[0] : tensor<{{.*}}xi64
  // PLAIN: torch.size "{{.*}}" = %{{.*}}[0] : tensor<{{.*}}xi64
  %2 = onnx.node "NonZero"(%keep) {name = "c", domain = "", version = 23 : i64, params = {}} : (tensor<?xi1, #repro.dims<"n">>) -> !onnx.unknown
  // CHECK: return %[[RESHAPE]], %{{.*}} : tensor<?x2xf32, #repro.dims<"batch*seq", "">>
  return %1, %2 : !onnx.unknown, !onnx.unknown
}
