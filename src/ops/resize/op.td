// order: 0 nearest, 1 linear, 3 cubic; the numbers of coordinates and rounding stand in spec.md. scales and roi: bits of f32.
def Repro_ResizeOp
    : Repro_Op<"resize", (ins Repro_Any:$x, I64Attr:$order, I64Attr:$coordinates, I64Attr:$rounding,
                          I64Attr:$antialias, I64Attr:$exclude_outside, F32Attr:$cubic, F32Attr:$extrapolation,
                          DenseI64ArrayAttr:$scales, OptionalAttr<DenseI64ArrayAttr>:$roi)> {
  let extraClassDeclaration = "bool copies() { return true; }";
  let hasVerifier = 1;
}
