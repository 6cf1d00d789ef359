// Conversion of element types.
def Repro_CastOp : Repro_Op<"cast", (ins Repro_Any:$x)> {
  let extraClassDeclaration = [{
    static bool elementwise() { return true; }
    static bool pointwise() { return true; }
  }];
  let hasVerifier = 1;
}
