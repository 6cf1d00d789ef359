// Linear quantization with f32 scales per tensor, per index of `axis`, or per `block` of indices
// (quantize.2).
def Repro_QuantizeLinearOp : Repro_Op<"quantize_linear",
    (ins Repro_F32:$x, Repro_F32:$scale, Optional<RankedTensorOf<[I8, UI8]>>:$zeros,
         I64Attr:$axis, I64Attr:$block)> {
  let hasVerifier = 1;
}
def Repro_DequantizeLinearOp : Repro_Op<"dequantize_linear",
    (ins RankedTensorOf<[I8, UI8, I32]>:$x, Repro_F32:$scale, Optional<RankedTensorOf<[I8, UI8]>>:$zeros,
         I64Attr:$axis, I64Attr:$block)> {
  let hasVerifier = 1;
}
