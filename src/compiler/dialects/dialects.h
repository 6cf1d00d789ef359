// The three dialects: onnx (as imported), repro (typed, numerics fixed), plan (kernel calls).
#pragma once

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
// Numerics and version stand as in spec/opset.toml; narrow operands are weights that the kernel widens.
mlir::LogicalResult verify_repro_op(mlir::Operation*);
// Result type of operands that broadcast: bool where the result is a truth value, else what the last operand is, widened.
mlir::LogicalResult infer_elementwise(std::optional<mlir::Location>, mlir::ValueRange operands, bool truth,
                                      mlir::SmallVectorImpl<mlir::Type>& out);
}  // namespace invar::compiler

#define GET_TYPEDEF_CLASSES
#include "onnx_dialect.h.inc"
#include "onnx_types.h.inc"
#include "plan_dialect.h.inc"
#include "repro_dialect.h.inc"
#include "repro_interfaces.h.inc"
#define GET_OP_CLASSES
#include "onnx_ops.h.inc"
#define GET_OP_CLASSES
#include "repro_ops.h.inc"
#define GET_OP_CLASSES
#include "plan_ops.h.inc"
