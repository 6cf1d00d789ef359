// The torch dialect: a plan as the source of a torch.nn.Module (emit/torch). Its operations are
// calls of Invar's operations or expressions of torch's own; both know which operation of
// spec/opset.toml they compute, and its rules check their operands.
#ifndef INVAR_COMPILER_TORCH_TD
#define INVAR_COMPILER_TORCH_TD

include "compiler/dialects/common.td"
include "mlir/IR/SymbolInterfaces.td"

def TorchDialect : Dialect {
  let name = "torch";
  let dependentDialects = ["::invar::compiler::ReproDialect"];  // whose operations verify
  let usePropertiesForAttributes = 0;
  let cppNamespace = "::invar::compiler";
}

// A parameter of the module, or a buffer if it is of integers.
def TorchWeightOp : Weight_Op<TorchDialect, (ins)>;

// The size that a value has when the module runs.
def TorchSizeOp : Op<TorchDialect, "size"> {
  let summary = "binds a symbol to an element of a value";
  let cppNamespace = "::invar::compiler";
  let arguments = (ins StrAttr:$name, AnyRankedTensor:$value, I64Attr:$element);
  let hasVerifier = 1;
  let assemblyFormat = "$name `=` $value `[` $element `]` attr-dict `:` type($value)";
}

class Torch_Compute<string mnemonic, dag more>
    : Op<TorchDialect, mnemonic, [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let cppNamespace = "::invar::compiler";
  let arguments = !con((ins StrAttr:$op, Variadic<AnyRankedTensor>:$inputs, DictionaryAttr:$params), more);
  let results = (outs AnyRankedTensor:$out);
  let hasVerifier = 1;
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getOut(), getOp()); }
  }];
}

// invar.primitives.OP(inputs..., params...). typed: the call names its result's shape and element
// type, because they do not follow from the operands.
def TorchPrimitiveOp : Torch_Compute<"primitive", (ins UnitAttr:$typed)> {
  let summary = "calls a reproducible operation";
  let assemblyFormat = "$op `(` $inputs `)` attr-dict `:` functional-type($inputs, results)";
}

// The same operation by torch's own functions. `text` is an expression of Python in which {0}, {1},
// ... are operands and {EXPR} is a dimension (plan.12).
def TorchExpressionOp : Torch_Compute<"expression", (ins StrAttr:$text)> {
  let summary = "computes an operation by torch's own functions";
  let assemblyFormat = "$op $text `(` $inputs `)` attr-dict `:` functional-type($inputs, results)";
}

def TorchFlowOp : Flow_Op<TorchDialect, [DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

#endif
