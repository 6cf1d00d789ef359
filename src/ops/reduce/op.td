// Reductions over any axes, which are dropped or (keepdims) become 1.
def Repro_Summed : RankedTensorOf<[F32, F64, I64, I32]>;
def Repro_Extreme : RankedTensorOf<[F32, F64, I64, I32, I8, UI8, I1]>;
class Repro_ReduceOp<string mnemonic, Type type = Repro_F32>
    : Repro_InferOp<mnemonic, (ins type:$x, DenseI64ArrayAttr:$axes, I64Attr:$keepdims)>;
def Repro_ReduceSumOp : Repro_ReduceOp<"reduce_sum", Repro_Summed>;
def Repro_ReduceMeanOp : Repro_ReduceOp<"reduce_mean", Repro_Summed>;
def Repro_ReduceProdOp : Repro_ReduceOp<"reduce_prod", Repro_Summed>;
def Repro_ReduceMaxOp : Repro_ReduceOp<"reduce_max", Repro_Extreme>;
def Repro_ReduceMinOp : Repro_ReduceOp<"reduce_min", Repro_Extreme>;
def Repro_ReduceL1Op : Repro_ReduceOp<"reduce_l1", Repro_Summed>;
def Repro_ReduceL2Op : Repro_ReduceOp<"reduce_l2", RankedTensorOf<[F32, F64]>>;
def Repro_ReduceSumSquareOp : Repro_ReduceOp<"reduce_sum_square", Repro_Summed>;
def Repro_ReduceLogSumOp : Repro_ReduceOp<"reduce_log_sum">;
def Repro_ReduceLogSumExpOp : Repro_ReduceOp<"reduce_log_sum_exp">;
// correction: 0 for the population variance, 1 for the sample variance.
class Repro_SpreadOp<string mnemonic> : Repro_InferOp<mnemonic,
    (ins Repro_F32:$x, DenseI64ArrayAttr:$axes, I64Attr:$keepdims, I64Attr:$correction)>;
def Repro_ReduceVarOp : Repro_SpreadOp<"reduce_var">;
def Repro_ReduceStdOp : Repro_SpreadOp<"reduce_std">;

// Index of the largest or smallest element along one axis, which is dropped. Of equal ones the
// first, or with select_last the last.
class Repro_ArgOp<string mnemonic>
    : Repro_InferOp<mnemonic, (ins Repro_F32:$x, I64Attr:$axis, I64Attr:$select_last)>;
def Repro_ArgmaxOp : Repro_ArgOp<"argmax">;
def Repro_ArgminOp : Repro_ArgOp<"argmin">;
// 1 at the first largest element along the axis, else 0.
def Repro_HardmaxOp : Repro_InferOp<"hardmax", (ins Repro_F32:$x, I64Attr:$axis)>;
