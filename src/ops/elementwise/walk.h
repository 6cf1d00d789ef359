// What all rows of this room share, compiled once without instruction-set flags: how the operands of a call are walked.
#pragma once
#include "kernels/call.h"

namespace invar::ops::elementwise {

inline constexpr int kOperands = 3, kScalars = 2;

// Operands that broadcast to a result (elementwise.2) as nested loops: adjacent dimensions that all operands walk in step are
// merged, so that `inner` is as long as it can be. Strides are in elements; 0 = repeated.
struct Walk {
  int operands, rank;  // rank: of the outer loops, innermost first
  int64_t dim[kMaxRank], stride[kOperands][kMaxRank];
  int64_t inner, step[kOperands];  // the innermost loop: its length, and 1 or 0 for each operand
};
Walk walk(const Call& call);

// An attribute that must be there, as a number.
float scalar(const Call& call, const char* name);

// Null where the operands broadcast to the result, else what is required.
const char* check_shapes(const Call& call);

}  // namespace invar::ops::elementwise
