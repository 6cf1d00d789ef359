// The repro dialect accepts only operations that this build can compute bit-exactly.
// RUN: %opt "%s" --split-input-file --verify-diagnostics

func.func @numerics(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has numerics "fast" version 1, this build has "ieee" version 1}}
  %0 = repro.add %x, %x {numerics = "fast", version = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @version(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has numerics "ieee" version 2, this build has "ieee" version 1}}
  %0 = repro.add %x, %x {numerics = "ieee", version = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @no_numerics(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{requires attribute 'numerics'}}
  %0 = repro.add %x, %x {version = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @type(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+2 {{inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = repro.sin %x {numerics = "correctly-rounded", version = 1 : i64} : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// A narrow activation has no exact widening rule of its own.
func.func @narrow(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{operand #0 has element type 'bf16', which only a weight may have here}}
  %0 = repro.add %x, %y {numerics = "ieee", version = 1 : i64} : (tensor<4xbf16>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @elements(%x: tensor<?x4xf32, #repro.dims<"seq", "">>) -> tensor<?x5xf32, #repro.dims<"seq", "">> {
  // expected-error @+1 {{does not keep the number of elements}}
  %0 = repro.reshape %x {numerics = "none", version = 1 : i64} : (tensor<?x4xf32, #repro.dims<"seq", "">>) -> tensor<?x5xf32, #repro.dims<"seq", "">>
  return %0 : tensor<?x5xf32, #repro.dims<"seq", "">>
}

// -----

// Constant data are hexadecimal in text.
func.func @data() {
  // expected-error @+1 {{constant data are not lower-case hexadecimal}}
  %0 = onnx.weight "w" {file = "", offset = 0 : i64, length = 1 : i64, data = "0G"} : tensor<1xui8>
  return
}

// -----

// Dimensions are written in the one form that plans have (plan.12).
// expected-error @+1 {{"seq*batch" is no dimension as plan.12 writes it}}
func.func @dims(%x: tensor<?xf32, #repro.dims<"seq*batch">>) -> tensor<?xf32, #repro.dims<"seq*batch">>

// -----

func.func @sizes() -> tensor<2xi64> {
  // expected-error @+1 {{needs one dimension for each element}}
  %0 = repro.sizes <"seq"> : tensor<2xi64>
  return %0 : tensor<2xi64>
}
