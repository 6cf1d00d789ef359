// How type inference refuses operands. A refusal is data: an error and, if equal dimensions would
// help, the constraint that makes them equal. It travels as a typed note of the MLIR diagnostic.
#pragma once

#include <optional>
#include <string>

#include "compiler/dialects/tensor_types.h"
#include "compiler/inference/result_type.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/ValueRange.h"

namespace invar::compiler {

struct InferenceError {
  Error error{Code::bad_input, ""};
  std::optional<Constraint> constraint{};
  // The operand of a type that the operation does not take.
  std::optional<unsigned> operand{};
};

// Infers the result of an operation of the repro dialect by its rule (inference/result_type.h). A
// refusal is a diagnostic, if there is a location.
mlir::LogicalResult infer_result_type(llvm::StringRef op, std::optional<mlir::Location>, mlir::ValueRange,
                                      mlir::DictionaryAttr, llvm::SmallVectorImpl<mlir::Type>& out);
// The refusal of a verifier (not_covered) by words about dimensions.
mlir::LogicalResult refuse(mlir::Operation*, const DimText& why);
// The refusal of an operand's type, without MLIR's words: the operation may not be the operator of
// the file.
std::string refusal_of_type(mlir::Type);

// The refusal that a diagnostic carries. A diagnostic without one, such as a verifier's, is
// bad_input.
InferenceError inference_error_of(mlir::Diagnostic&);

}  // namespace invar::compiler
