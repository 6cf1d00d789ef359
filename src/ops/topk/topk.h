// What the rows of topk share.
#pragma once
#include "ops/call.h"

namespace invar::ops {

struct TopkShape : Axis {
  int64_t k;
  bool largest;
};
TopkShape topk_shape(const Call&);
int64_t topk_units(const Call&, int phase);  // rows
size_t topk_scratch(const Call&);

// topk.2: the place of x in the order, as an unsigned number: -0 beside +0, NaN last of the ascending order.
INVAR_INLINE uint32_t topk_rank(float x) {
  uint32_t b = __builtin_bit_cast(uint32_t, x);
  uint32_t magnitude = b & 0x7fffffff;
  uint32_t rank = b != magnitude && magnitude ? ~b : magnitude | 0x80000000;
  return magnitude > 0x7f800000 ? 0xffffffff : rank;
}

}  // namespace invar::ops
