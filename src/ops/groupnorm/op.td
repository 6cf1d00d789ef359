// Group normalization over `groups` groups of channels (dimension 1) of each sample:
// (x - mean) / sqrt(variance + epsilon) * weight + bias.
def Repro_GroupnormOp : Repro_InferOp<"groupnorm",
    (ins Repro_F32:$x, Repro_Wide:$weight, Repro_Wide:$bias, I64Attr:$groups, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
