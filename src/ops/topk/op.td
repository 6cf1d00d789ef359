// Indices of the k first elements along an axis, in order; without k of all.
def Repro_TopkOp
    : Repro_InferOp<"topk", (ins Repro_F32:$x, I64Attr:$axis, OptionalAttr<I64Attr>:$k, I64Attr:$largest)>;
