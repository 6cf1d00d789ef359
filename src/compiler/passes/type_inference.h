// Result types of single operations on operands of static shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "mlir/IR/MLIRContext.h"

namespace invar::compiler {

// infer_type() of compiler.h in a context that has the dialects.
Result<TensorType> infer_type(mlir::MLIRContext&, const std::string& op, const Attributes& attrs,
                              const std::vector<TensorType>& operands,
                              const std::optional<TensorType>& wanted = {});

}  // namespace invar::compiler
