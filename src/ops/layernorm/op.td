// Layer normalization over the dimensions that the weight has:
// (x - mean) / sqrt(variance + epsilon) * weight (+ bias).
def Repro_LayernormOp : Repro_InferOp<"layernorm",
    (ins Repro_F32:$x, Repro_Wide:$weight, Optional<Repro_Wide>:$bias, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
// Its gradients, of x and of the weight, which has the dimensions of x from the axis on.
def Repro_LayernormBackwardOp : Repro_InferOp<"layernorm_backward",
    (ins Repro_F32:$grad, Repro_F32:$x, Repro_Wide:$weight, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 2; }";
}
def Repro_LayernormBackwardWeightOp : Repro_InferOp<"layernorm_backward_weight",
    (ins Repro_F32:$grad, Repro_F32:$x, I64Attr:$axis, F32Attr:$epsilon)>;
