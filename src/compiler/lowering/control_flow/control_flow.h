// Shared declarations of the control-flow lowering: conditions, body inputs, and outlined bodies.
#pragma once

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/lower_onnx.h"

namespace invar::compiler {

// Operations that the copies of one model's bodies may have, steps included. Loops beyond it are
// not unrolled.
inline constexpr int64_t kMaxClonedOps = 1 << 17;

inline Value i64_scalar(NodeView& node, int64_t value) {
  return node.constant(bytes_of({&value, 1}, 8), DType::i64);
}
// The value of a constant condition.
std::optional<bool> constant_condition(Value);
// A condition of one element, reshaped to a scalar.
Result<Value> scalar_condition(NodeView&, Value);
inline Error never_ends_error() {
  return not_covered(
      "nothing ends it: it has no trip count below 2^63 - 1, and its condition is always true");
}
// Checks number and element types of the inputs that a body is given.
Status check_body_inputs(Region&, ValueRange inputs);
// The constant `true`.
Value make_true(OpBuilder&, Location);
// Both types have one element type and one rank.
Status check_same_type(Type, Type, const std::string& what);

// The function of a body, and its data-dependent dimensions.
struct Conversion::OutlinedBody {
  func::FuncOp function;
  DataDependentDims dims;
  func::ReturnOp end() { return cast<func::ReturnOp>(function.front().getTerminator()); }
  void update_type() {
    function.setFunctionType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                               end()->getOperandTypes()));
  }
};

}  // namespace invar::compiler
