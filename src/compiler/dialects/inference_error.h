// How type inference refuses operands. A refusal is data: a code, a message and, if equal
// dimensions would help, the constraint that makes them equal. It travels as a typed note of the
// MLIR diagnostic.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "base/status.h"
#include "compiler/dialects/tensor_types.h"
#include "mlir/IR/Diagnostics.h"

namespace invar::compiler {

// A symbol of an input's dimension that must equal an expression (spec/onnx.md onnx.25).
struct Constraint {
  std::string symbol;
  DimExpr size;
};

struct InferenceError {
  Code code = Code::bad_input;
  std::string message;
  std::optional<Constraint> constraint{};
  // The operand of a type that the operation does not take.
  std::optional<unsigned> operand{};
};

// For inference functions of rooms. All emit a diagnostic, if there is a location, and return
// failure. The operands contradict each other: the model is wrong (bad_input).
mlir::LogicalResult mismatch(std::optional<mlir::Location>, const llvm::Twine& message);
// The operands may be right, but the operation does not support them (not_covered).
mlir::LogicalResult refuse(std::optional<mlir::Location>, const llvm::Twine& message);
// Two dimensions that must be equal are not known to be: bad_input if both are constants, else
// not_covered with the constraint that makes them equal.
mlir::LogicalResult unequal_dims(std::optional<mlir::Location>, const Dim& a, const Dim& b,
                                 const llvm::Twine& what);

// The refusal that a diagnostic carries. A diagnostic without one, such as a verifier's, is
// bad_input.
InferenceError inference_error_of(mlir::Diagnostic&);

// The same decisions for lowering rules, which return errors. Shapes that must be equal and are
// not: not_covered if they are equal for some sizes, or up to leading dimensions of 1; else
// bad_input.
Error unequal_shapes(const Shape&, const Shape&, const std::string& message);
// Shapes that do not fit together: bad_input if all dimensions are constants, else not_covered.
Error shape_error(std::initializer_list<Shape>, const std::string& message);

// The constraint that makes two dimensions equal; nothing if neither is a single symbol.
std::optional<Constraint> equality_constraint(const Dim& a, const Dim& b);
// The constraint that makes two element counts equal: on a symbol that divides the count of `from`.
std::optional<Constraint> equality_constraint(const Shape& from, const Shape& to);

}  // namespace invar::compiler
