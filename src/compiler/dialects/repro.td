// The repro dialect: the typed operations of the rooms (src/ops/NAME/ops.toml). Each carries the
// numerics and the version of spec/opset.toml that define its bits.
#ifndef INVAR_COMPILER_REPRO_TD
#define INVAR_COMPILER_REPRO_TD

include "compiler/dialects/common.td"

def ReproDialect : Dialect {
  let name = "repro";
  let usePropertiesForAttributes = 0;  // saves a third of the generated code
  let cppNamespace = "::invar::compiler";
  let useDefaultAttributePrinterParser = 1;
}

def Repro_DimsAttr : AttrDef<ReproDialect, "Dims"> {
  let mnemonic = "dims";
  let summary = "dimension expressions (plan.12); in text, a list of strings";
  let parameters = (ins AttrParameter<"::invar::compiler::DimList", "",
                                      "const ::invar::compiler::DimList &">:$dims);
  let hasCustomAssemblyFormat = 1;
}

def Repro_F32 : RankedTensorOf<[F32]>;
// f32, or a narrower weight that the kernel widens exactly.
def Repro_Wide : RankedTensorOf<[F32, BF16, F16]>;
def Repro_I64 : RankedTensorOf<[I64]>;
def Repro_Any : RankedTensorOf<[F32, BF16, F16, F64, I64, I32, I16, I8, UI64, UI32, UI16, UI8, I1]>;

def ReproOp : OpInterface<"ReproOp"> {
  let cppNamespace = "::invar::compiler";
  let methods = [
    StaticInterfaceMethod<"The kernel widens a bf16 or f16 weight in this operand.", "bool", "widens",
                          (ins "unsigned":$operand), "", "return false;">,
    StaticInterfaceMethod<"Output element i depends on element i of the only operand.", "bool",
                          "elementwise", (ins), "", "return false;">,
    StaticInterfaceMethod<"Moves elements without changing their bits.", "bool", "copies", (ins), "",
                          "return false;">,
    StaticInterfaceMethod<"Output element i depends on elements i of the broadcast operands, for any i.",
                          "bool", "pointwise", (ins), "", "return false;">,
    InterfaceMethod<"Verifies the attributes alone.", "::llvm::LogicalResult", "verify_attributes", (ins),
                    "return typename ConcreteOp::Adaptor($_op).verify($_op.getLoc());">
  ];
  let verify = "return ::invar::compiler::verify_repro_op($_op);";
}

// One function parses all operations and one prints them: TableGen would write two for each.
defvar repro_syntax = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser& parser, ::mlir::OperationState& result) {
      return ::invar::compiler::parse_repro_op(parser, result);
    }
    void $cppClass::print(::mlir::OpAsmPrinter& printer) {
      ::invar::compiler::print_repro_op(printer, getOperation());
    }
}];

// Operations are created by name, so TableGen's eight builders for each are omitted. Accessors for
// `numerics` and `version`, which every operation has, are omitted, too: the interface checks both.
class Repro_Op<string mnemonic, dag operands, list<Trait> traits = []>
    : Op<ReproDialect, mnemonic, [NoMemoryEffect, ReproOp] # traits> {
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$operands), [{
    $_state.addTypes(types);
    $_state.addOperands(operands);
  }]>];
  let cppNamespace = "::invar::compiler";
  let arguments = operands;
  let results = (outs Repro_Any:$out);
  let hasCustomAssemblyFormat = 1;
  let extraClassDefinition = repro_syntax;
}
// An operation whose result's type follows from its operands by a rule (inference/result_type.h).
class Repro_InferOp<string mnemonic, dag operands>
    : Repro_Op<mnemonic, operands, [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let extraClassDefinition = repro_syntax # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext*, std::optional<::mlir::Location> loc, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type>& out) {
      return ::invar::compiler::infer_result_type(getOperationName(), loc, operands, attributes, out);
    }
  }];
}

// Integers computed from dimensions: a row-major list. Replaced by arithmetic where kernels read
// it. Plans have none.
def ReproSizesOp : Op<ReproDialect, "sizes", [Pure]> {
  let cppNamespace = "::invar::compiler";
  let arguments = (ins Repro_DimsAttr:$sizes);
  let hasVerifier = 1;
  let results = (outs Repro_I64:$out);
  let assemblyFormat = "$sizes attr-dict `:` type($out)";
}

// Binds a symbol to an element of a value. Later types may use it as a dimension.
def ReproBindOp : Op<ReproDialect, "bind"> {
  let cppNamespace = "::invar::compiler";
  let arguments = (ins Repro_I64:$value, I64Attr:$element, StrAttr:$name);
  let assemblyFormat = "$name `=` $value `[` $element `]` attr-dict `:` type($value)";
}

def ReproFlowOp : Flow_Op<ReproDialect>;

// transposed: a rank-2 weight that is stored as the transpose of its type. Plans have none.
def ReproWeightOp : Weight_Op<ReproDialect, (ins UnitAttr:$transposed)>;

#endif
