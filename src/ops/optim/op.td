// Steps of optimisers: parameters, gradients, state, scalars -> new parameters and state.
def Repro_SgdStepOp : Repro_InferOp<"sgd_step",
    (ins Repro_F32:$param, Repro_F32:$grad, Repro_F32:$scalars)>;
def Repro_MomentumStepOp : Repro_InferOp<"momentum_step",
    (ins Repro_F32:$param, Repro_F32:$grad, Repro_F32:$buffer, Repro_F32:$scalars,
         OptionalAttr<I64Attr>:$nesterov)>;
def Repro_AdamStepOp : Repro_InferOp<"adam_step",
    (ins Repro_F32:$param, Repro_F32:$grad, Repro_F32:$first, Repro_F32:$second, Repro_F32:$scalars)>;
def Repro_AmsgradStepOp : Repro_InferOp<"amsgrad_step",
    (ins Repro_F32:$param, Repro_F32:$grad, Repro_F32:$first, Repro_F32:$second, Repro_F32:$most,
         Repro_F32:$scalars)>;
def Repro_LionStepOp : Repro_InferOp<"lion_step",
    (ins Repro_F32:$param, Repro_F32:$grad, Repro_F32:$first, Repro_F32:$scalars)>;
