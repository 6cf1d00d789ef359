// Indices of the k first elements along an axis, sorted; without k, of all elements.
def Repro_TopkOp
    : Repro_InferOp<"topk", (ins Repro_F32:$x, I64Attr:$axis, OptionalAttr<I64Attr>:$k, I64Attr:$largest)>;
