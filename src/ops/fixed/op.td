// Sums of gradients in fixed point: independent of the order and the split of the units.
def Repro_FixedSumOp : Repro_InferOp<"fixed_sum", (ins Repro_F32:$x)>;
def Repro_FixedMagnitudeOp : Repro_InferOp<"fixed_magnitude", (ins Repro_F32:$x)>;
def Repro_FixedValueOp : Repro_InferOp<"fixed_value", (ins Repro_I64:$sum, Repro_I64:$magnitude)>;
// The sums and the magnitude of the units' products transpose(a) x b, without a copy for each unit.
def Repro_FixedMatmulOp : Repro_InferOp<"fixed_matmul", (ins Repro_F32:$a, Repro_F32:$b)>;
