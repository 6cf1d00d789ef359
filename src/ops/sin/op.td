def Repro_SinOp : Repro_InferOp<"sin", (ins Repro_F32:$x)>;
