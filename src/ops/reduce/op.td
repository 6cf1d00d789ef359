// Reductions over any axes, which disappear or (keepdims) become 1.
class Repro_ReduceOp<string mnemonic>
    : Repro_InferOp<mnemonic, (ins Repro_F32:$x, DenseI64ArrayAttr:$axes, I64Attr:$keepdims)>;
def Repro_ReduceSumOp : Repro_ReduceOp<"reduce_sum">;
def Repro_ReduceMeanOp : Repro_ReduceOp<"reduce_mean">;
def Repro_ReduceProdOp : Repro_ReduceOp<"reduce_prod">;
def Repro_ReduceMaxOp : Repro_ReduceOp<"reduce_max">;
def Repro_ReduceMinOp : Repro_ReduceOp<"reduce_min">;
def Repro_ReduceL1Op : Repro_ReduceOp<"reduce_l1">;
def Repro_ReduceL2Op : Repro_ReduceOp<"reduce_l2">;
def Repro_ReduceSumSquareOp : Repro_ReduceOp<"reduce_sum_square">;
def Repro_ReduceLogSumOp : Repro_ReduceOp<"reduce_log_sum">;
def Repro_ReduceLogSumExpOp : Repro_ReduceOp<"reduce_log_sum_exp">;

// Index of the largest or smallest element along one axis; of equals the first or (select_last) the last. The axis
// disappears.
class Repro_ArgOp<string mnemonic>
    : Repro_InferOp<mnemonic, (ins Repro_F32:$x, I64Attr:$axis, I64Attr:$select_last)>;
def Repro_ArgmaxOp : Repro_ArgOp<"argmax">;
def Repro_ArgminOp : Repro_ArgOp<"argmin">;
