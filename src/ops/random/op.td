// Numbers from Philox4x32-10 by the seed and the index of an element.
def Repro_RandomBitsOp : Repro_Op<"random_bits", (ins Repro_I64:$seed, Repro_I64:$offset)>;
def Repro_RandomUniformOp : Repro_Op<"random_uniform", (ins Repro_I64:$seed, Repro_I64:$offset)>;
// Zeros elements with probability `ratio`, and scales the others by 1 / (1 - ratio).
def Repro_RandomDropoutOp
    : Repro_InferOp<"random_dropout", (ins Repro_F32:$x, Repro_I64:$seed, Repro_I64:$offset, F32Attr:$ratio)>;
