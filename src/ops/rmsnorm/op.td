// RMS normalization over the last axis: x / sqrt(mean(x^2) + epsilon) * weight.
def Repro_RmsnormOp : Repro_InferOp<"rmsnorm", (ins Repro_F32:$x, Repro_Wide:$weight, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 1; }";
}
