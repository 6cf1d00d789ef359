// Definitions that the dialects share: weights and control flow.
#ifndef INVAR_COMPILER_COMMON_TD
#define INVAR_COMPILER_COMMON_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A constant: bytes [offset, offset + length) of `file`. A small constant without a file has its
// bytes in `data`, raw in memory and hexadecimal in text (constant_syntax.cc). A large one without
// a file is in the compiler's InlineConstants.
class Weight_Op<Dialect dialect, dag more>
    : Op<dialect, "weight", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let cppNamespace = "::invar::compiler";
  let arguments = !con((ins StrAttr:$name, StrAttr:$file, I64Attr:$offset, I64Attr:$length,
                        OptionalAttr<StrAttr>:$data), more);
  let results = (outs AnyRankedTensor:$out);
  let assemblyFormat = "$name `` custom<WeightAttrs>(attr-dict) `:` type($out)";
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getOut(), getName()); }
  }];
}

// Data-dependent control flow, "loop" or "if" (spec/plan.md plan.16). Bodies are functions of the
// module.
class Flow_Op<Dialect dialect, list<Trait> traits = []> : Op<dialect, "flow", traits> {
  let cppNamespace = "::invar::compiler";
  let arguments = (ins StrAttr:$op, FlatSymbolRefArrayAttr:$bodies, Variadic<AnyRankedTensor>:$inputs,
                   I64Attr:$carried);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$op $bodies `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

#endif
