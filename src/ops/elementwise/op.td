// Elementwise operations. All infer their result type by infer_elementwise
// (src/compiler/lowering/elementwise_inference.cc). truth: the result is boolean.
class Elementwise<string mnemonic, dag operands, string truth> : Repro_InferOp<mnemonic, operands> {
  let extraClassDeclaration = "static bool pointwise() { return true; }";
  let extraClassDefinition = [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext*, std::optional<::mlir::Location> loc, Adaptor op,
        ::mlir::SmallVectorImpl<::mlir::Type>& out) {
      return ::invar::compiler::infer_elementwise(loc, op.getOperands(), }] # truth # [{, out);
    }
  }];
}
def Repro_Real : RankedTensorOf<[F32, F64]>;
def Repro_Integer : RankedTensorOf<[I64, I32, I8, UI64, UI8]>;
def Repro_Number : RankedTensorOf<[F32, F64, I64, I32, I8, UI64, UI8]>;
def Repro_Operand : RankedTensorOf<[F32, BF16, F16, F64, I64, I32, I8, UI64, UI8]>;
def Repro_Base : RankedTensorOf<[F32, BF16, F16, I64, I32]>;
def Repro_Bool : RankedTensorOf<[I1]>;
def Repro_Compared : RankedTensorOf<[F32, BF16, F16, F64, I64, I32, I8, UI64, UI8, I1]>;

class Unary<string op, TypeConstraint x = Repro_F32, string truth = "false">
    : Elementwise<op, (ins x:$x), truth>;
class Scaled<string op, dag scalars, string truth = "false">
    : Elementwise<op, !con((ins Repro_F32:$x), scalars), truth>;
class Binary<string op, TypeConstraint t, string truth = "false"> : Elementwise<op, (ins t:$a, t:$b), truth> {
  let extraClassDeclaration = [{
    static bool widens(unsigned) { return true; }
    static bool pointwise() { return true; }
  }];
}

def Repro_CeilOp : Unary<"ceil", Repro_Real>;
def Repro_FloorOp : Unary<"floor", Repro_Real>;
def Repro_RoundOp : Unary<"round", Repro_Real>;
def Repro_TruncOp : Unary<"trunc", Repro_Real>;
def Repro_SqrtOp : Unary<"sqrt", Repro_Real>;
def Repro_ReciprocalOp : Unary<"reciprocal", Repro_Real>;
def Repro_ExpOp : Unary<"exp">;
def Repro_ExpF64Op : Unary<"exp_f64", RankedTensorOf<[F64]>>;
def Repro_LogF64Op : Unary<"log_f64", RankedTensorOf<[F64]>>;
def Repro_Exp2Op : Unary<"exp2">;
def Repro_Exp10Op : Unary<"exp10">;
def Repro_Expm1Op : Unary<"expm1">;
def Repro_LogOp : Unary<"log">;
def Repro_Log2Op : Unary<"log2">;
def Repro_Log10Op : Unary<"log10">;
def Repro_Log1pOp : Unary<"log1p">;
def Repro_RsqrtOp : Unary<"rsqrt">;
def Repro_CbrtOp : Unary<"cbrt">;
def Repro_SoftplusOp : Unary<"softplus">;
def Repro_SinOp : Unary<"sin">;
def Repro_CosOp : Unary<"cos">;
def Repro_TanOp : Unary<"tan">;
def Repro_SinpiOp : Unary<"sinpi">;
def Repro_CospiOp : Unary<"cospi">;
def Repro_AsinOp : Unary<"asin">;
def Repro_AcosOp : Unary<"acos">;
def Repro_AtanOp : Unary<"atan">;
def Repro_SinhOp : Unary<"sinh">;
def Repro_CoshOp : Unary<"cosh">;
def Repro_TanhOp : Unary<"tanh">;
def Repro_AsinhOp : Unary<"asinh">;
def Repro_AcoshOp : Unary<"acosh">;
def Repro_AtanhOp : Unary<"atanh">;
def Repro_ErfOp : Unary<"erf">;
def Repro_ErfcOp : Unary<"erfc">;
def Repro_ReluOp : Unary<"relu", Repro_Real>;
def Repro_HardswishOp : Unary<"hardswish">;
def Repro_SoftsignOp : Unary<"softsign">;
def Repro_SigmoidOp : Unary<"sigmoid">;
def Repro_SiluOp : Unary<"silu">;
def Repro_MishOp : Unary<"mish">;
def Repro_GeluTanhOp : Unary<"gelu_tanh">;
def Repro_GeluOp : Unary<"gelu">;
def Repro_EluOp : Scaled<"elu", (ins F32Attr:$alpha)>;
def Repro_SeluOp : Scaled<"selu", (ins F32Attr:$alpha, F32Attr:$gamma)>;
def Repro_CeluOp : Scaled<"celu", (ins F32Attr:$alpha)>;
def Repro_LeakyreluOp : Scaled<"leakyrelu", (ins F32Attr:$alpha)>;
def Repro_ThresholdedreluOp : Scaled<"thresholdedrelu", (ins F32Attr:$alpha)>;
def Repro_ShrinkOp : Scaled<"shrink", (ins F32Attr:$lambd, F32Attr:$bias)>;
def Repro_HardsigmoidOp : Scaled<"hardsigmoid", (ins F32Attr:$alpha, F32Attr:$beta)>;
def Repro_ClipOp : Scaled<"clip", (ins F32Attr:$min, F32Attr:$max)>;
def Repro_SwishOp : Scaled<"swish", (ins F32Attr:$alpha)>;
def Repro_AbsOp : Unary<"abs", Repro_Number>;
def Repro_NegOp : Unary<"neg", Repro_Number>;
def Repro_SignOp : Unary<"sign", Repro_Number>;
def Repro_IsnanOp : Unary<"isnan", Repro_Real, "true">;
def Repro_IsinfOp : Scaled<"isinf", (ins I64Attr:$negative, I64Attr:$positive), "true">;
def Repro_AddOp : Binary<"add", Repro_Operand>;
def Repro_SubOp : Binary<"sub", Repro_Operand>;
def Repro_MulOp : Binary<"mul", Repro_Operand>;
def Repro_DivOp : Binary<"div", Repro_Operand>;
def Repro_MaxOp : Binary<"max", Repro_Operand>;
def Repro_MinOp : Binary<"min", Repro_Operand>;
def Repro_FmodOp : Binary<"fmod", Repro_Operand>;
def Repro_ModOp : Binary<"mod", Repro_Operand>;
def Repro_PowOp : Binary<"pow", Repro_Base>;
def Repro_Atan2Op : Binary<"atan2", Repro_Wide>;
def Repro_BitwiseAndOp : Binary<"bitwise_and", Repro_Integer>;
def Repro_BitwiseOrOp : Binary<"bitwise_or", Repro_Integer>;
def Repro_BitwiseXorOp : Binary<"bitwise_xor", Repro_Integer>;
def Repro_ShiftLeftOp : Binary<"shift_left", Repro_Integer>;
def Repro_ShiftRightOp : Binary<"shift_right", Repro_Integer>;
def Repro_BitwiseNotOp : Unary<"bitwise_not", Repro_Integer>;
def Repro_PreluOp : Binary<"prelu", Repro_Wide>;
def Repro_EqualOp : Binary<"equal", Repro_Compared, "true">;
def Repro_LessOp : Binary<"less", Repro_Operand, "true">;
def Repro_LessEqualOp : Binary<"less_equal", Repro_Operand, "true">;
def Repro_GreaterOp : Binary<"greater", Repro_Operand, "true">;
def Repro_GreaterEqualOp : Binary<"greater_equal", Repro_Operand, "true">;
def Repro_LogicalAndOp : Binary<"logical_and", Repro_Bool, "true">;
def Repro_LogicalOrOp : Binary<"logical_or", Repro_Bool, "true">;
def Repro_LogicalXorOp : Binary<"logical_xor", Repro_Bool, "true">;
def Repro_LogicalNotOp : Unary<"logical_not", Repro_Bool, "true">;
def Repro_WhereOp : Elementwise<"where", (ins Repro_Bool:$condition, Repro_Any:$a, Repro_Any:$b), "false"> {
  let extraClassDeclaration = [{
    static bool widens(unsigned i) { return i > 0; }
    static bool pointwise() { return true; }
  }];
}
