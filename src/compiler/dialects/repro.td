// The reproducible dialect: one typed operation per room (src/ops/NAME/op.td), each carrying the numerics and
// the version of spec/opset.toml that fix its bits.
#ifndef INVAR_IR_REPRO_TD
#define INVAR_IR_REPRO_TD

include "compiler/dialects/common.td"

def ReproDialect : Dialect {
  let name = "repro";
  let usePropertiesForAttributes = 0;  // a third of the generated code less
  let cppNamespace = "::invar::compiler";
}

def Repro_F32 : RankedTensorOf<[F32]>;
def Repro_Wide : RankedTensorOf<[F32, BF16, F16]>;  // f32, or a narrower weight widened exactly by the kernel
def Repro_I64 : RankedTensorOf<[I64]>;
def Repro_Any : RankedTensorOf<[F32, BF16, F16, F64, I64, I32, I16, I8, UI64, UI32, UI16, UI8, I1]>;

def ReproOp : OpInterface<"ReproOp"> {
  let cppNamespace = "::invar::compiler";
  let methods = [
    InterfaceMethod<"The kernel widens a bf16 or f16 weight in this operand.", "bool", "widens",
                    (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"Output element i depends on element i of the only operand.", "bool", "elementwise",
                    (ins), "", "return false;">,
    InterfaceMethod<"Elements arrive as they are, whatever their type.", "bool", "copies", (ins), "",
                    "return false;">,
    InterfaceMethod<"Output element i depends on the elements of the operands that broadcasting puts at i, wherever i is.",
                    "bool", "pointwise", (ins), "", "return false;">
  ];
  let verify = "return ::invar::compiler::verify_repro_op($_op);";
}

// Rooms create operations by their names, so that the eight builders that TableGen makes for each are left out.
class Repro_Op<string mnemonic, dag operands, list<Trait> traits = []>
    : Op<ReproDialect, mnemonic, [NoMemoryEffect, ReproOp] # traits> {
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$operands), [{
    $_state.addTypes(types);
    $_state.addOperands(operands);
  }]>];
  let cppNamespace = "::invar::compiler";
  let arguments = !con(operands, (ins StrAttr:$numerics, I64Attr:$version));
  let results = (outs Repro_Any:$out);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
// With result types inferred: import.cc defines inferReturnTypes, which also says what does not fit together.
class Repro_InferOp<string mnemonic, dag operands>
    : Repro_Op<mnemonic, operands, [InferTypeOpAdaptor]>;

// Integers that depend on the dimensions of the inputs alone, each the text of a polynomial (plan.12), row-major. Where kernels read
// them they become operations of their own; gone before a plan is made.
def ReproSizesOp : Op<ReproDialect, "sizes", [Pure]> {
  let cppNamespace = "::invar::compiler";
  let arguments = (ins StrArrayAttr:$sizes);
  let results = (outs Repro_I64:$out);
  let assemblyFormat = "$sizes attr-dict `:` type($out)";
}

// An element of a value becomes a symbol, which stands for a dimension from here on.
def ReproBindOp : Op<ReproDialect, "bind"> {
  let cppNamespace = "::invar::compiler";
  let arguments = (ins Repro_I64:$value, I64Attr:$element, StrAttr:$name);
  let assemblyFormat = "$name `=` $value `[` $element `]` attr-dict `:` type($value)";
}

def ReproFlowOp : Flow_Op<ReproDialect>;

// transposed: a rank-2 weight whose stored order is the transpose of its type; gone before a plan is made.
def ReproWeightOp : Weight_Op<ReproDialect, (ins UnitAttr:$transposed)>;

#endif
