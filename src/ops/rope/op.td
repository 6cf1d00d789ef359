// Rotary embedding of [B, S, heads * D], or with heads_first [B, heads, S, D], by angles
// [B, S, rotary / 2]. rotary_dim 0 means D.
def Repro_RopeOp : Repro_InferOp<"rope",
    (ins Repro_F32:$x, Repro_F32:$cos, Repro_F32:$sin, I64Attr:$num_heads, I64Attr:$rotary_dim,
         I64Attr:$interleaved, OptionalAttr<I64Attr>:$heads_first)>;
