// What the rules of control flow share.
#pragma once

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/lower_onnx.h"

namespace invar::compiler {

// Copies that the graphs of one model make, in operations and steps; beyond it, loops are not unrolled.
inline constexpr int64_t kMostCopied = 1 << 17;

inline Value scalar(Node& node, int64_t value) {
  return node.constant(bytes_of({&value, 1}, 8), DType::i64);
}
// The content of a condition that is a constant.
std::optional<bool> known_condition(Value);
// A condition of one element, as a scalar.
Result<Value> as_condition(Node&, Value);
inline Error never_ends() {
  return not_covered(
      "nothing ends it: it has no trip count below 2^63 - 1, and its condition is always true");
}
// The inputs that a graph of a node is given: as many as it takes, of the element types that it declares.
Status fits(Region&, ValueRange inputs);

}  // namespace invar::compiler
