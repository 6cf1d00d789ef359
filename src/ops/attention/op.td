// Scaled dot-product attention (spec/attention.md). With `state`, queries attend to the keys and
// values of earlier calls, too, and query i is at position past + i. `more`: mask, sinks,
// lengths and slopes, each present if its attribute is 1.
def Repro_AttentionOp : Repro_InferOp<"attention",
    (ins Repro_F32:$q, Repro_F32:$k, Repro_F32:$v, Variadic<Repro_Any>:$more, I64Attr:$q_heads,
         I64Attr:$kv_heads, F32Attr:$scale, I64Attr:$causal,
         OptionalAttr<I64Attr>:$heads_first, OptionalAttr<I64Attr>:$mask,
         OptionalAttr<I64Attr>:$sinks, OptionalAttr<I64Attr>:$lengths, OptionalAttr<I64Attr>:$left,
         OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$first, OptionalAttr<F32Attr>:$softcap,
         OptionalAttr<I64Attr>:$slopes,
         OptionalAttr<StrAttr>:$state)>;
// The same of rows rounded to 16-bit integers (spec/attention-exact16.md).
def Repro_AttentionExact16Op : Repro_InferOp<"attention_exact16",
    (ins Repro_F32:$q, Repro_F32:$k, Repro_F32:$v, Variadic<Repro_Any>:$more, I64Attr:$q_heads,
         I64Attr:$kv_heads, F32Attr:$scale, I64Attr:$causal,
         OptionalAttr<I64Attr>:$heads_first, OptionalAttr<I64Attr>:$mask,
         OptionalAttr<I64Attr>:$sinks, OptionalAttr<I64Attr>:$lengths, OptionalAttr<I64Attr>:$left,
         OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$first, OptionalAttr<F32Attr>:$softcap,
         OptionalAttr<I64Attr>:$slopes,
         OptionalAttr<StrAttr>:$state)>;
// Its gradients by q, k and v, end to end, from that of the result and the result y.
def Repro_AttentionBackwardOp : Repro_InferOp<"attention_backward",
    (ins Repro_F32:$grad, Repro_F32:$y, Repro_F32:$q, Repro_F32:$k, Repro_F32:$v,
         Variadic<Repro_Any>:$more, I64Attr:$q_heads, I64Attr:$kv_heads, F32Attr:$scale,
         I64Attr:$causal, OptionalAttr<I64Attr>:$heads_first, OptionalAttr<I64Attr>:$mask,
         OptionalAttr<I64Attr>:$sinks, OptionalAttr<I64Attr>:$lengths, OptionalAttr<I64Attr>:$left,
         OptionalAttr<I64Attr>:$right, OptionalAttr<I64Attr>:$first, OptionalAttr<F32Attr>:$softcap,
         OptionalAttr<I64Attr>:$slopes)>;
