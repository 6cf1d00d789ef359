// Gather along `axis` (absent: 0); the dimensions of the indices replace the axis. bf16 and f16 are
// widened to f32.
def Repro_GatherOp
    : Repro_InferOp<"gather", (ins Repro_Any:$table, Repro_I64:$indices, OptionalAttr<I64Attr>:$axis)> {
  let extraClassDeclaration = "static bool widens(unsigned operand) { return operand == 0; }";
}
// The other operations of this room copy bits.
class Repro_IndexOp<string mnemonic, dag operands> : Repro_InferOp<mnemonic, operands> {
  let extraClassDeclaration = "static bool copies() { return true; }";
}
// Gathers single elements along an axis.
def Repro_GatherElementsOp
    : Repro_IndexOp<"gather_elements", (ins Repro_Any:$x, Repro_I64:$indices, I64Attr:$axis)>;
// Gathers slices that index tuples select.
def Repro_GatherNdOp
    : Repro_IndexOp<"gather_nd", (ins Repro_Any:$x, Repro_I64:$indices, I64Attr:$batch_dims)>;
// Scatters updates to the elements that the same indices would gather. reduction: 0 none, 1 add, 2
// mul, 3 min, 4 max.
def Repro_ScatterElementsOp
    : Repro_IndexOp<"scatter_elements", (ins Repro_Any:$x, Repro_I64:$indices, Repro_Any:$updates,
                                         I64Attr:$axis, I64Attr:$reduction)>;
def Repro_ScatterNdOp : Repro_IndexOp<"scatter_nd", (ins Repro_Any:$x, Repro_I64:$indices, Repro_Any:$updates,
                                                     I64Attr:$reduction)>;
