// Convolution of x [N, C, ...] with weights [M, C / groups, ...] (+ bias [M]). pads: all begins,
// then all ends.
def Repro_ConvOp : Repro_InferOp<"conv",
    (ins Repro_F32:$x, Repro_Wide:$weight, Optional<Repro_Wide>:$bias,
         DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
         DenseI64ArrayAttr:$pads, I64Attr:$groups)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
// Transposed convolution, with weights [C, M / groups, ...].
def Repro_ConvTransposeOp : Repro_InferOp<"conv_transpose",
    (ins Repro_F32:$x, Repro_Wide:$weight, Optional<Repro_Wide>:$bias,
         DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
         DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$output_padding, I64Attr:$groups)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
// conv with the products of matmul_exact16, of the patches that its results read.
def Repro_ConvExact16Op : Repro_InferOp<"conv_exact16",
    (ins Repro_F32:$x, Repro_Wide:$weight, Optional<Repro_Wide>:$bias,
         DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
         DenseI64ArrayAttr:$pads, I64Attr:$groups)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
// The gradient of a convolution's weights, from that of its result and from its operand. Its shape
// is that of the weights.
def Repro_ConvBackwardWeightOp : Repro_Op<"conv_backward_weight",
    (ins Repro_F32:$grad, Repro_F32:$x,
         DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
         DenseI64ArrayAttr:$pads, I64Attr:$groups)>;
