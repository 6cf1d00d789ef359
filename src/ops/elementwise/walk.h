// Broadcasting of operands as nested loops, shared by all rows and compiled once without
// instruction-set flags.
#pragma once
#include "kernels/call.h"

namespace invar::ops::elementwise {

inline constexpr int kOperands = 3, kScalars = 2;

// Operands that broadcast to a result (elementwise.2) as nested loops. Adjacent dimensions that all
// operands traverse in step are merged, so `inner` is as long as possible. Strides are in elements;
// 0 = broadcast.
struct BroadcastLoops {
  int operands, rank;  // rank: number of outer loops, innermost first
  int64_t dim[kMaxRank], stride[kOperands][kMaxRank];
  int64_t inner, step[kOperands];  // the innermost loop: its length, and step 1 or 0 per operand
};
BroadcastLoops broadcast_loops(const Call& call);

// A required attribute as a number.
float scalar(const Call& call, const char* name);

// Null if the operands broadcast to the result, else what is required.
const char* check_shapes(const Call& call);

}  // namespace invar::ops::elementwise
