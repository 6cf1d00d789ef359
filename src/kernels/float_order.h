// A total order of binary32 values as unsigned integers. All NaNs are equal, and so are both zeros.
#pragma once
#include <cstdint>

#include "num/inline.h"

namespace invar::ops {

// The order key: ascending from -inf to +inf, NaN last.
INVAR_INLINE uint32_t order_key(float x) {
  uint32_t b = __builtin_bit_cast(uint32_t, x);
  uint32_t magnitude = b & 0x7fffffff;
  uint32_t rank = b != magnitude && magnitude ? ~b : magnitude | 0x80000000;
  return magnitude > 0x7f800000 ? 0xffffffff : rank;
}

}  // namespace invar::ops
