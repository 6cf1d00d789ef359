// RMS normalization over the last axis: x / sqrt(mean(x^2) + epsilon) * weight.
def Repro_RmsnormOp : Repro_InferOp<"rmsnorm", (ins Repro_F32:$x, Repro_Wide:$weight, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 1; }";
}
// Its gradients, of x and of the weight, which has the dimensions of x from the axis on.
def Repro_RmsnormBackwardOp : Repro_InferOp<"rmsnorm_backward",
    (ins Repro_F32:$grad, Repro_F32:$x, Repro_Wide:$weight, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 2; }";
}
def Repro_RmsnormBackwardWeightOp : Repro_InferOp<"rmsnorm_backward_weight",
    (ins Repro_F32:$grad, Repro_F32:$x, I64Attr:$axis, F32Attr:$epsilon)>;
