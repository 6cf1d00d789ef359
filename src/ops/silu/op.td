// Bit-equal to mul(x, sigmoid(x)).
def Repro_SiluOp : Repro_InferOp<"silu", (ins Repro_F32:$x)>;
