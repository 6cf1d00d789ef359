// Softmax and log-softmax along one axis.
class Repro_AxisOp<string mnemonic> : Repro_InferOp<mnemonic, (ins Repro_F32:$x, I64Attr:$axis)>;
def Repro_SoftmaxOp : Repro_AxisOp<"softmax">;
def Repro_LogSoftmaxOp : Repro_AxisOp<"log_softmax">;
// Their gradients, from that of the result and the result y.
class Repro_AxisBackwardOp<string mnemonic>
    : Repro_InferOp<mnemonic, (ins Repro_F32:$grad, Repro_F32:$y, I64Attr:$axis)>;
def Repro_SoftmaxBackwardOp : Repro_AxisBackwardOp<"softmax_backward">;
def Repro_LogSoftmaxBackwardOp : Repro_AxisBackwardOp<"log_softmax_backward">;
// The loss of rows with a class each, and its gradient from that of the losses.
def Repro_CrossEntropyOp
    : Repro_InferOp<"cross_entropy", (ins Repro_F32:$x, Repro_I64:$target, I64Attr:$ignore)>;
def Repro_CrossEntropyBackwardOp
    : Repro_InferOp<"cross_entropy_backward", (ins Repro_F32:$grad, Repro_F32:$x, Repro_I64:$target,
                                                   I64Attr:$ignore)>;
