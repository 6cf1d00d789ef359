// Batch normalization with given mean and variance of each channel (dimension 1):
// (x - mean) / sqrt(variance + epsilon) * weight + bias.
def Repro_BatchnormOp : Repro_InferOp<"batchnorm",
    (ins Repro_F32:$x, Repro_Wide:$weight, Repro_Wide:$bias, Repro_Wide:$mean,
         Repro_Wide:$variance, F32Attr:$epsilon)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 1; }";
}
