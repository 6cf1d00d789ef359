def Repro_MulOp : Repro_InferOp<"mul", (ins Repro_Wide:$a, Repro_Wide:$b)> {
  let extraClassDeclaration = "bool widens(unsigned) { return true; }";
}
