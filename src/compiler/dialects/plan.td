// The plan dialect: kernel calls in execution order, with buffer slots, hashed weights, and states
// that persist between steps.
#ifndef INVAR_COMPILER_PLAN_TD
#define INVAR_COMPILER_PLAN_TD

include "compiler/dialects/common.td"

def PlanDialect : Dialect {
  let name = "plan";
  let usePropertiesForAttributes = 0;
  let cppNamespace = "::invar::compiler";
}

def PlanWeightOp : Weight_Op<PlanDialect, (ins StrAttr:$sha256)>;

def Plan_StateOp : Op<PlanDialect, "state"> {
  let summary = "declares memory that persists between steps";
  let cppNamespace = "::invar::compiler";
  let arguments = (ins StrAttr:$name);
  let assemblyFormat = "$name attr-dict";
}

def PlanBindOp : Op<PlanDialect, "bind"> {
  let summary = "binds a symbol to an element of a value";
  let cppNamespace = "::invar::compiler";
  let arguments = (ins StrAttr:$name, AnyRankedTensor:$value, I64Attr:$element);
  let assemblyFormat = "$name `=` $value `[` $element `]` attr-dict `:` type($value)";
}

def Plan_CallOp : Op<PlanDialect, "call"> {
  let summary = "one kernel call";
  let cppNamespace = "::invar::compiler";
  let arguments = (ins StrAttr:$op, Variadic<AnyRankedTensor>:$inputs, I64Attr:$version,
                   DictionaryAttr:$params, OptionalAttr<I64Attr>:$slot, OptionalAttr<StrAttr>:$state);
  let results = (outs AnyRankedTensor:$out);
  let assemblyFormat = "$op `(` $inputs `)` attr-dict `:` functional-type($inputs, results)";
}

def PlanFlowOp : Flow_Op<PlanDialect>;

#endif
