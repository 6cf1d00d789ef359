// Over the last axis.
def Repro_SoftmaxOp : Repro_InferOp<"softmax", (ins Repro_F32:$x)>;
