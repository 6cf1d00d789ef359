// Rows of a table.
def Repro_GatherOp : Repro_InferOp<"gather", (ins Repro_Wide:$table, Repro_I64:$indices)> {
  let extraClassDeclaration = "bool widens(unsigned operand) { return operand == 0; }";
}
