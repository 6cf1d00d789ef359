// Scaled dot-product attention of [B, S, heads * D] operands. With a state the keys and values of earlier steps
// are seen too; query i stands at absolute position past + i.
def Repro_AttentionOp : Repro_InferOp<"attention",
    (ins Repro_F32:$q, Repro_F32:$k, Repro_F32:$v, I64Attr:$q_heads, I64Attr:$kv_heads, F32Attr:$scale,
         I64Attr:$causal, OptionalAttr<StrAttr>:$state)>;
