// Index of the largest element along the last axis, the lowest on ties; the axis disappears.
def Repro_ArgmaxOp : Repro_InferOp<"argmax", (ins Repro_F32:$x)>;
