// Greedy non-maximum suppression: for each batch and class the indices of the selected boxes, best
// first, then -1. k: the number of slots (absent: one per box).
def Repro_NmsOp : Repro_InferOp<"nms",
    (ins Repro_F32:$boxes, Repro_F32:$scores, Repro_I64:$most, Repro_F32:$overlap, Optional<Repro_F32>:$least,
         OptionalAttr<I64Attr>:$center_point_box, OptionalAttr<I64Attr>:$k)>;
