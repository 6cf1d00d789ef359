// The torch dialect refuses what the operations of the specification refuse, and texts and control flow
// that do not fit.
// RUN: %opt "%s" --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{"frobnicate" is not in spec/opset.toml}}
  %0 = torch.primitive "frobnicate"(%x) {params = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @operand_count(%x: tensor<4xf32>) {
  // expected-error @+1 {{"add": 'repro.add' op expected 2 operands, but found 1}}
  %0 = torch.primitive "add"(%x) {params = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @element_type(%x: tensor<4xi64>) {
  // expected-error @+1 {{"exp": 'repro.exp' op operand #0 must be ranked tensor of}}
  %0 = torch.primitive "exp"(%x) {params = {}} : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @shapes(%x: tensor<2x3xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+1 {{"matmul": }}
  %0 = torch.primitive "matmul"(%x, %w) {params = {trans_b = 0 : i64}} : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @result(%x: tensor<2x3xf32>, %w: tensor<3x5xf32>) {
  // expected-error @+1 {{"matmul": }}
  %0 = torch.primitive "matmul"(%x, %w) {params = {trans_b = 0 : i64}} : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{"softmax": 'repro.softmax' op requires attribute 'axis'}}
  %0 = torch.primitive "softmax"(%x) {params = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @other_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{"exp": has no attribute 'axis'}}
  %0 = torch.primitive "exp"(%x) {params = {axis = 0 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// A narrow operand may be a weight that the kernel widens, and nothing else.
func.func @narrow(%x: tensor<2x3xf32>, %w: tensor<3x5xbf16>) {
  %0 = torch.weight "w" {file = "weights", length = 30 : i64, offset = 0 : i64} : tensor<3x5xbf16>
  %1 = torch.primitive "matmul"(%x, %0) {params = {trans_b = 0 : i64}} : (tensor<2x3xf32>, tensor<3x5xbf16>) -> tensor<2x5xf32>
  // expected-error @+1 {{operand #1 has element type 'bf16', which only a weight may have here}}
  %2 = torch.primitive "matmul"(%x, %w) {params = {trans_b = 0 : i64}} : (tensor<2x3xf32>, tensor<3x5xbf16>) -> tensor<2x5xf32>
  return
}

// -----

func.func @expression(%x: tensor<4xf32>) {
  // expected-error @+1 {{"exp": }}
  %0 = torch.expression "exp" "torch.exp({0})"(%x) {params = {}} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @operand(%x: tensor<4xf32>) {
  // expected-error @+1 {{has operand {1} in its text, but only 1 operands}}
  %0 = torch.expression "exp" "torch.exp({1})"(%x) {params = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @braces(%x: tensor<4xf32>) {
  // expected-error @+1 {{has a text with a field that is neither {NUMBER} nor {DIMENSION}}}
  %0 = torch.expression "exp" "torch.exp({0 if True})"(%x) {params = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @size(%x: tensor<4xf32>, %n: tensor<2xi64>) {
  torch.size "k" = %n[1] : tensor<2xi64>
  // expected-error @+1 {{needs a value of i64}}
  torch.size "k" = %x[0] : tensor<4xf32>
  return
}

// -----

func.func @element(%n: tensor<2xi64>) {
  // expected-error @+1 {{has no element 2}}
  torch.size "k" = %n[2] : tensor<2xi64>
  return
}

// -----

func.func @then(%x: tensor<4xf32>) -> tensor<4xf32> attributes {repro.body} {
  return %x : tensor<4xf32>
}
func.func @otherwise(%x: tensor<4xf32>) -> tensor<4xi64> attributes {repro.body} {
  %0 = torch.primitive "cast"(%x) {params = {}, typed} : (tensor<4xf32>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>) {
  %0 = torch.flow "if" [@then, @then](%c, %x) {carried = 0 : i64} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{has a result 0 of another type than @otherwise gives}}
  %1 = torch.flow "if" [@then, @otherwise](%c, %x) {carried = 0 : i64} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_body(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{has no body @absent}}
  %0 = torch.flow "if" [@absent, @absent](%c, %x) {carried = 0 : i64} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%i: tensor<i64>, %x: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) attributes {repro.body} {
  %c = torch.primitive "cast"(%i) {params = {}, typed} : (tensor<i64>) -> tensor<i1>
  return %c, %x : tensor<i1>, tensor<4xf32>
}
func.func @loop(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<4xf32>) {
  %0 = torch.flow "loop" [@step](%n, %c, %x) {carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{has a body @step of 2 inputs and 2 results; it needs 3 and 2}}
  %1 = torch.flow "loop" [@step](%n, %c, %x, %x) {carried = 1 : i64} : (tensor<i64>, tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
