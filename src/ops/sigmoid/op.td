def Repro_SigmoidOp : Repro_InferOp<"sigmoid", (ins Repro_F32:$x)>;
