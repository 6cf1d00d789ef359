// Data movement: these operations copy elements bit by bit.
class Repro_MoveOp<string mnemonic, dag operands> : Repro_Op<mnemonic, operands> {
  let extraClassDeclaration = "static bool copies() { return true; }";
}
class Repro_MoveInferOp<string mnemonic, dag operands> : Repro_InferOp<mnemonic, operands> {
  let extraClassDeclaration = "static bool copies() { return true; }";
}

// Transpose: dimension d of the result is dimension perm[d] of the operand.
def Repro_TransposeOp : Repro_MoveInferOp<"transpose", (ins Repro_Any:$x, DenseI64ArrayAttr:$perm)>;
// Strided slice: start + i * step in every dimension; a negative start counts from the end.
def Repro_SliceOp
    : Repro_MoveOp<"slice", (ins Repro_Any:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps)>;
// Broadcast to the shape of the result.
def Repro_ExpandOp : Repro_MoveOp<"expand", (ins Repro_Any:$x)>;
def Repro_ConcatOp : Repro_MoveInferOp<"concat", (ins Variadic<Repro_Any>:$operands, I64Attr:$axis)>;

// Constant padding: begins[d] elements precede those of the operand; the end pad follows from the
// shape of the result.
def Repro_PadOp
    : Repro_MoveOp<"pad", (ins Repro_Any:$x, Optional<Repro_Any>:$value, DenseI64ArrayAttr:$begins)>;
class Repro_ContinueOp<string mnemonic>
    : Repro_MoveOp<mnemonic, (ins Repro_Any:$x, DenseI64ArrayAttr:$begins)>;
def Repro_PadEdgeOp : Repro_ContinueOp<"pad_edge">;
def Repro_PadReflectOp : Repro_ContinueOp<"pad_reflect">;
def Repro_PadWrapOp : Repro_ContinueOp<"pad_wrap">;

// [N, C, H, W]: the channels hold blocks as [C, b, b] if crd, else as [b, b, C].
def Repro_DepthToSpaceOp
    : Repro_MoveInferOp<"depth_to_space", (ins Repro_Any:$x, I64Attr:$blocksize, I64Attr:$crd)>;
def Repro_SpaceToDepthOp : Repro_MoveInferOp<"space_to_depth", (ins Repro_Any:$x, I64Attr:$blocksize)>;

// Keeps the triangle on and above (upper) or below the k-th diagonal; the rest becomes zero.
def Repro_TriluOp : Repro_MoveInferOp<"trilu", (ins Repro_Any:$x, I64Attr:$upper, I64Attr:$k)>;
def Repro_ReverseSequenceOp
    : Repro_MoveInferOp<"reverse_sequence", (ins Repro_Any:$x, Repro_I64:$lengths, I64Attr:$time_axis)>;
// values = [off, on]; `axis` is a new axis.
def Repro_Class : RankedTensorOf<[I64, I32]>;
def Repro_OneHotOp
    : Repro_MoveOp<"one_hot", (ins Repro_Class:$indices, Repro_Any:$values, I64Attr:$axis)>;
// start + i * delta.
def Repro_Counted : RankedTensorOf<[F32, I64, I32]>;
def Repro_IotaOp : Repro_Op<"iota", (ins Repro_Counted:$start, Repro_Counted:$delta)>;
