// [..., M, K] x [..., K, N], either one by columns with trans_a, trans_b; leading dimensions broadcast.
def Repro_MatmulOp : Repro_InferOp<"matmul", (ins Repro_F32:$a, Repro_Wide:$b, I64Attr:$trans_b, OptionalAttr<I64Attr>:$trans_a)> {
  let extraClassDeclaration = "bool widens(unsigned operand) { return operand == 1; }";
}
