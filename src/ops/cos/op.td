def Repro_CosOp : Repro_InferOp<"cos", (ins Repro_F32:$x)>;
