// Prefix sums and products along one axis.
def Repro_Scanned : RankedTensorOf<[F32, F64, I64, I32]>;
class Repro_ScanOp<string mnemonic>
    : Repro_InferOp<mnemonic, (ins Repro_Scanned:$x, I64Attr:$axis, I64Attr:$exclusive, I64Attr:$reverse)>;
def Repro_CumsumOp : Repro_ScanOp<"cumsum">;
def Repro_CumprodOp : Repro_ScanOp<"cumprod">;
