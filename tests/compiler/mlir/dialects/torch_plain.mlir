// How torch's own functions say calls whose dimensions only a call decides.
// RUN: %opt "%s" --pass-pipeline="builtin.module(func.func(repro-to-torch{plain=true}))" | %check

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x8xf32, #repro.dims<"n", "">>, %w: tensor<4x8xf32>, %y: tensor<2x?xf32, #repro.dims<"", "n">>) {
  // CHECK: torch.expression "matmul" "functional.linear({0}, {1})"(%arg0, %arg1)
  %0 = repro.matmul %x, %w {numerics = "fp32-1", trans_b = 1 : i64, version = 1 : i64} : (tensor<?x8xf32, #repro.dims<"n", "">>, tensor<4x8xf32>) -> tensor<?x4xf32, #repro.dims<"n", "">>
  // CHECK: torch.expression "slice" "{0}.narrow(1, -2, 2)"(%arg2)
  %1 = repro.slice %y {numerics = "none", starts = array<i64: 0, -2>, steps = array<i64: 1, 1>, version = 1 : i64} : (tensor<2x?xf32, #repro.dims<"", "n">>) -> tensor<2x2xf32>
  // CHECK: torch.expression "slice" "{0}[:, 1::2]"(%arg0)
  %2 = repro.slice %x {numerics = "none", starts = array<i64: 0, 1>, steps = array<i64: 1, 2>, version = 1 : i64} : (tensor<?x8xf32, #repro.dims<"n", "">>) -> tensor<?x4xf32, #repro.dims<"n", "">>
  // CHECK: torch.expression "reshape" "{0}.reshape(({2*n}, 4))"(%arg0)
  %3 = repro.reshape %x {numerics = "none", version = 1 : i64} : (tensor<?x8xf32, #repro.dims<"n", "">>) -> tensor<?x4xf32, #repro.dims<"2*n", "">>
  // CHECK: torch.expression "clip" "torch.clamp({0}, min=0.0)"(%arg0)
  %4 = repro.clip %x {max = 0x7F800000 : f32, min = 0.0 : f32, numerics = "ieee", version = 1 : i64} : (tensor<?x8xf32, #repro.dims<"n", "">>) -> tensor<?x8xf32, #repro.dims<"n", "">>
  return
}
