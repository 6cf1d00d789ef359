// Shapes and element types as tensor types carry them; the encodings hold symbolic dimensions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "compiler/inference/shape.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace invar {
inline llvm::hash_code hash_value(const std::vector<std::optional<DimExpr>>& dims) {
  llvm::hash_code all(dims.size());
  for (const std::optional<DimExpr>& dim : dims) all = llvm::hash_combine(all, dim ? dim->hash() : 0);
  return all;
}
}  // namespace invar

namespace invar::compiler {

// The dimensions of a DimsAttr. nullopt: none, because the size is a constant or unknown.
using DimList = std::vector<std::optional<DimExpr>>;

Shape shape_of(mlir::Type ranked_tensor);
mlir::RankedTensorType tensor_of(const Shape&, mlir::Type element);
DimText text_of_type(mlir::Type);

std::optional<DType> dtype_of(mlir::Type element);
mlir::Type type_of(mlir::MLIRContext*, DType);
// The element type of a TensorProto.DataType code; null if ONNX has no such code.
mlir::Type onnx_type(mlir::MLIRContext*, int32_t code);

}  // namespace invar::compiler
