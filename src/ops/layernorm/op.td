// Layer normalization over the dimensions that the weight has:
// (x - mean) / sqrt(variance + epsilon) * weight (+ bias).
def Repro_LayernormOp : Repro_InferOp<"layernorm",
    (ins Repro_F32:$x, Repro_Wide:$weight, Optional<Repro_Wide>:$bias, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
