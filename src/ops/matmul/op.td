// [..., M, K] x [K, N], or [N, K] with trans_b; the leading dimensions of `a` are rows.
def Repro_MatmulOp : Repro_InferOp<"matmul", (ins Repro_F32:$a, Repro_Wide:$b, I64Attr:$trans_b)> {
  let extraClassDeclaration = "bool widens(unsigned operand) { return operand == 1; }";
}
