// What reference rows say in Kernel::alone: of results whose leading axis is a batch, which element depends on which.
#pragma once
#include "kernels/check.h"

namespace invar::ops {

// Operand 0 alone has the batch. The call's shapes say that the result has it where the operand does.
inline bool alone_first(const Call&, uint64_t carries) {
  return carries == 1;
}

// The same, for what works along the axis that the attribute says.
template <int fallback>
bool alone_along(const Call& c, uint64_t carries) {
  return carries == 1 && axis_in(c.in[0], attr_i(c, "axis", fallback)) > 0;
}

// Operands that broadcast to the result, element by element.
inline bool alone_elementwise(const Call& c, uint64_t carries) {
  for (size_t i = 0; i < c.in.size(); ++i) {
    const View& v = c.in[i];
    const bool same_rank = v.rank == c.out[0].rank;
    if (carries >> i & 1 ? !same_rank : same_rank && v.dim[0] != 1) return false;
  }
  return true;
}

// A weight, and what else is not of the batch, covers the last dimensions of operand 0 but not the leading one.
inline bool alone_rows(const Call& c, uint64_t carries) {
  return carries == 1 && c.in[1].rank < c.in[0].rank;
}

}  // namespace invar::ops
