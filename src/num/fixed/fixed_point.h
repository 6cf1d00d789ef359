// The constants of fixed-point sums of gradients (spec/ops/fixed.md), and what is done to one
// number.
#pragma once

#include <cstdint>

#include "num/inline.h"

namespace invar::num {

inline constexpr float kFixedLimit = 0x1p14f;           // fixed.2: a value below it in magnitude counts
inline constexpr float kFixedScale = 0x1p49f;           // fixed.2
inline constexpr float kFixedMagnitudeScale = 0x1p16f;  // fixed.4
inline constexpr int64_t kFixedOverflow = 1 << 30;      // fixed.4: of a unit that has another value

// fixed.4: the magnitude of a unit from the bits of its largest |x|, which order as the values do.
// The product is exact, as is that of a subnormal number.
INVAR_INLINE int64_t fixed_magnitude_of(uint32_t largest) {
  const float x = __builtin_bit_cast(float, largest);
  if (!(x < kFixedLimit)) return kFixedOverflow;
  const float scaled = x * kFixedMagnitudeScale;
  const auto whole = static_cast<int64_t>(scaled);
  return whole + (static_cast<float>(whole) < scaled);
}

// fixed.5: whether sums of this magnitude are known not to have overflowed.
INVAR_INLINE bool fixed_is_valid(int64_t magnitude) {
  return magnitude >= 0 && magnitude < kFixedOverflow;
}

}  // namespace invar::num
