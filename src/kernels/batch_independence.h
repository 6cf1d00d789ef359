// Batch-invariance predicates for OpContract::batch_independent: whether element i of the leading
// (batch) axis of the results depends only on element i of the batched operands.
#pragma once
#include "kernels/check.h"

namespace invar::ops {

// Only operand 0 is batched. The shapes of the call imply that the result is batched where operand
// 0 is.
inline bool batch_independent_first_operand(const Call&, uint64_t batched) {
  return batched == 1;
}

// The same for operations along the axis in their attributes A: it must not be the leading one.
template <class A>
bool batch_independent_along_axis(const Call& c, uint64_t batched) {
  return batched == 1 && axis_in(c.in[0], A(c).axis) > 0;
}

// Elementwise operations: an operand that is not batched must broadcast along the leading axis.
inline bool batch_independent_elementwise(const Call& c, uint64_t batched) {
  for (size_t i = 0; i < c.in.size(); ++i) {
    const View& v = c.in[i];
    const bool same_rank = v.rank == c.out[0].rank;
    if (batched >> i & 1 ? !same_rank : same_rank && v.dim[0] != 1) return false;
  }
  return true;
}

// Operand 1 (a weight) covers the trailing dimensions of operand 0 but not the leading one.
inline bool batch_independent_rows(const Call& c, uint64_t batched) {
  return batched == 1 && c.in[1].rank < c.in[0].rank;
}

}  // namespace invar::ops
