// The onnx dialect: an imported ONNX graph. Every node of every domain is an `onnx.node`, so import
// never fails. A tensor type's encoding holds its symbolic dimensions:
// tensor<?x?xi64, #repro.dims<"batch", "seq">>; "" is a constant or unknown.
#ifndef INVAR_COMPILER_ONNX_TD
#define INVAR_COMPILER_ONNX_TD

include "compiler/dialects/common.td"

def OnnxDialect : Dialect {
  let name = "onnx";
  let usePropertiesForAttributes = 0;
  let cppNamespace = "::invar::compiler";
  let useDefaultTypePrinterParser = 1;
}

class Onnx_Type<string name, string mnemonic_> : TypeDef<OnnxDialect, name> { let mnemonic = mnemonic_; }
def Onnx_Unknown : Onnx_Type<"Unknown", "unknown"> {
  let summary = "a value of unknown type";
}
def Onnx_Absent : Onnx_Type<"Absent", "absent"> {
  let summary = "an absent optional operand or result";
}
def Onnx_Element : Onnx_Type<"Element", "element"> {
  let summary = "an element type that MLIR lacks, by TensorProto.DataType (strings, 4-bit floats)";
  let parameters = (ins "int32_t":$code);
  let assemblyFormat = "`<` $code `>`";
}

def Onnx_AbsentOp : Op<OnnxDialect, "absent", [Pure]> {
  let cppNamespace = "::invar::compiler";
  let results = (outs Onnx_Absent:$out);
  let assemblyFormat = "attr-dict";
}

def OnnxWeightOp : Weight_Op<OnnxDialect, (ins)>;

def Onnx_NodeOp : Op<OnnxDialect, "node", [Pure]> {
  let summary = "one ONNX node";
  let arguments = (ins StrAttr:$op_type, Variadic<AnyType>:$inputs, StrAttr:$name, StrAttr:$domain,
                   I64Attr:$version, DictionaryAttr:$params,
                   // attribute -> kind, for unsupported kinds (sparse tensors)
                   OptionalAttr<DictionaryAttr>:$other_params,
                   OptionalAttr<StrArrayAttr>:$body_names);  // of the attributes that are graphs
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    $op_type `(` $inputs `)` `` custom<NodeAttrs>(attr-dict) `:`
    functional-type($inputs, $outputs) (`of` $bodies^)?
  }];
}

def Onnx_YieldOp : Op<OnnxDialect, "yield", [Pure, Terminator, ParentOneOf<["NodeOp"]>]> {
  let summary = "the outputs of a nested graph";
  let cppNamespace = "::invar::compiler";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
