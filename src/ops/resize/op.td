// Resampling. order: 0 nearest, 1 linear, 3 cubic; spec/ops/resize.md numbers coordinates and
// rounding. scales and roi are the bits of f32 numbers.
def Repro_ResizeOp
    : Repro_Op<"resize", (ins Repro_Any:$x, I64Attr:$order, I64Attr:$coordinates, I64Attr:$rounding,
                          I64Attr:$antialias, I64Attr:$exclude_outside, F32Attr:$cubic,
                          F32Attr:$extrapolation,
                          DenseI64ArrayAttr:$scales, OptionalAttr<DenseI64ArrayAttr>:$roi)> {
  let extraClassDeclaration = "static bool copies() { return true; }";
  let hasVerifier = 1;
}
