// Sums of gradients in fixed point: independent of the order and the split of the units.
def Repro_FixedSumOp : Repro_InferOp<"fixed_sum", (ins Repro_F32:$x)>;
def Repro_FixedMagnitudeOp : Repro_InferOp<"fixed_magnitude", (ins Repro_F32:$x)>;
def Repro_FixedValueOp : Repro_InferOp<"fixed_value", (ins Repro_I64:$sum, Repro_I64:$magnitude)>;
