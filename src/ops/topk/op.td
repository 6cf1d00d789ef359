// Indices of the k first elements along an axis, in order.
def Repro_TopkOp : Repro_InferOp<"topk", (ins Repro_F32:$x, I64Attr:$axis, I64Attr:$k, I64Attr:$largest)>;
