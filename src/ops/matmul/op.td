// Batched matrix product [..., M, K] x [..., K, N]; trans_a and trans_b: a factor is stored
// transposed. Leading dimensions broadcast.
def Repro_MatmulOp : Repro_InferOp<"matmul",
    (ins RankedTensorOf<[F32, F64]>:$a, RankedTensorOf<[F32, BF16, F16, F64]>:$b, I64Attr:$trans_b,
         OptionalAttr<I64Attr>:$trans_a)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 1; }";
}
// Rows of a, or one row for all, each times the matrix of b that its index chooses: [K, N], or
// [N, K] with trans_b; b is as many operands as matrices, or one of rank 3 (grouped_matmul.1).
def Repro_GroupedMatmulOp : Repro_InferOp<"grouped_matmul",
    (ins Repro_F32:$a, Repro_I64:$index, Variadic<RankedTensorOf<[F32, BF16, F16]>>:$b, I64Attr:$trans_b)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 2; }";
}
// a x b, where b has integers of 4 or 8 bits with a scale for each column and block
// (matmul_nbits.1).
def Repro_Integers : RankedTensorOf<[I8, UI8]>;
def Repro_MatmulNbitsOp : Repro_InferOp<"matmul_nbits",
    (ins Repro_F32:$a, Repro_Integers:$b, Repro_Wide:$scales, Optional<Repro_Integers>:$zeros, I64Attr:$bits,
     I64Attr:$block, I64Attr:$trans_b, I64Attr:$zero)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 2; }";
}
// Product of 8-bit integers minus their zero points, modulo 2^32. zeros: zero point of a, then of
// b; one element, or one for each row of a and column of b.
def Repro_MatmulIntegerOp : Repro_InferOp<"matmul_integer",
    (ins Repro_Integers:$a, Repro_Integers:$b, Variadic<Repro_Integers>:$zeros)>;
// The sums and the magnitude of the units' products transpose(a) x b, without a copy for each unit.
def Repro_FixedMatmulOp : Repro_InferOp<"fixed_matmul", (ins Repro_F32:$a, Repro_F32:$b)>;
// Matrix product of rows rounded to 16-bit integers, exact in between (spec/exact16.md).
def Repro_MatmulExact16Op : Repro_InferOp<"matmul_exact16",
    (ins Repro_F32:$a, RankedTensorOf<[F32, BF16, F16]>:$b, I64Attr:$trans_b)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 1; }";
}
// grouped_matmul with the products of matmul_exact16.
def Repro_GroupedMatmulExact16Op : Repro_InferOp<"grouped_matmul_exact16",
    (ins Repro_F32:$a, Repro_I64:$index, Variadic<RankedTensorOf<[F32, BF16, F16]>>:$b, I64Attr:$trans_b)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand >= 2; }";
}
// The operands of matmul_nbits; rows of a in 16 bits, exact in between (matmul_nbits_exact16.2).
def Repro_MatmulNbitsExact16Op : Repro_InferOp<"matmul_nbits_exact16",
    (ins Repro_F32:$a, Repro_Integers:$b, Repro_Wide:$scales, Optional<Repro_Integers>:$zeros, I64Attr:$bits,
     I64Attr:$block, I64Attr:$trans_b, I64Attr:$zero)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 2; }";
}
