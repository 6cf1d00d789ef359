def Repro_AddOp : Repro_InferOp<"add", (ins Repro_Wide:$a, Repro_Wide:$b)> {
  let extraClassDeclaration = "bool widens(unsigned) { return true; }";
}
