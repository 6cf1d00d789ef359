// The dialects of the compiler: onnx (the imported graph) and repro (typed operations with fixed
// numerics).
#pragma once

#include "compiler/dialects/inference_error.h"
#include "compiler/dialects/tensor_types.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace invar::compiler {
// Verifies that numerics and version are those of spec/opset.toml, and that every bf16 or f16
// operand is a weight that the kernel widens.
mlir::LogicalResult verify_repro_op(mlir::Operation*);
// The syntax of repro operations: operands, attributes, and the types of both sides.
mlir::ParseResult parse_repro_op(mlir::OpAsmParser&, mlir::OperationState&);
void print_repro_op(mlir::OpAsmPrinter&, mlir::Operation*);

// Directives of the assembly formats in *.td. Constant bytes, `data`, are raw in memory and
// hexadecimal in text.
// The attributes of weights, except the name, which the format prints itself.
mlir::ParseResult parseWeightAttrs(mlir::OpAsmParser&, mlir::NamedAttrList&);
void printWeightAttrs(mlir::OpAsmPrinter&, mlir::Operation*, mlir::DictionaryAttr);
// The attributes of onnx.node, except op_type. Its tensors are dictionaries in `params`.
mlir::ParseResult parseNodeAttrs(mlir::OpAsmParser&, mlir::NamedAttrList&);
void printNodeAttrs(mlir::OpAsmPrinter&, mlir::Operation*, mlir::DictionaryAttr);
}  // namespace invar::compiler

#define GET_TYPEDEF_CLASSES
#include "onnx_dialect.h.inc"
#include "onnx_types.h.inc"
#include "repro_dialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "repro_attributes.h.inc"
#include "repro_interfaces.h.inc"
#define GET_OP_CLASSES
#include "onnx_ops.h.inc"
#define GET_OP_CLASSES
#include "repro_ops.h.inc"
