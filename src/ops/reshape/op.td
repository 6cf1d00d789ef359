// Reinterprets the bits of each element as another type of the same width.
def Repro_BitcastOp : Repro_Op<"bitcast", (ins Repro_Any:$x)> {
  let extraClassDeclaration = "static bool copies() { return true; }";
  let hasVerifier = 1;
}
// The same elements in the same order, in another shape.
def Repro_ReshapeOp : Repro_Op<"reshape", (ins Repro_Any:$x)> {
  let extraClassDeclaration = "static bool copies() { return true; }";
  let hasVerifier = 1;
}
