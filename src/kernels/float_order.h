// The order of floats in which all NaNs are one and so are both zeros, as integers.
#pragma once
#include <cstdint>

#include "num/inline.h"

namespace invar::ops {

// Ascending from -inf to +inf; NaN last.
INVAR_INLINE uint32_t rank_of(float x) {
  uint32_t b = __builtin_bit_cast(uint32_t, x);
  uint32_t magnitude = b & 0x7fffffff;
  uint32_t rank = b != magnitude && magnitude ? ~b : magnitude | 0x80000000;
  return magnitude > 0x7f800000 ? 0xffffffff : rank;
}

}  // namespace invar::ops
