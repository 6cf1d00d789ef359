// Softmax and log-softmax along one axis.
class Repro_AxisOp<string mnemonic> : Repro_InferOp<mnemonic, (ins Repro_F32:$x, I64Attr:$axis)>;
def Repro_SoftmaxOp : Repro_AxisOp<"softmax">;
def Repro_LogSoftmaxOp : Repro_AxisOp<"log_softmax">;
