// Constants and shapes of fixed-point sums, shared by all rows.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

inline constexpr float kFixedLimit = 0x1p14f;           // fixed.2: a value below it in magnitude counts
inline constexpr float kFixedScale = 0x1p49f;           // fixed.2
inline constexpr float kFixedMagnitudeScale = 0x1p16f;  // fixed.4
inline constexpr int64_t kFixedOverflow = 1 << 30;      // fixed.4: of a unit that has another value

// x [units, n].
struct FixedUnits {
  int64_t units, n;
};
FixedUnits fixed_units(const Call&);

// fixed.8: the products of units, a [units, length, rows] and b [units, length, columns].
struct FixedProducts {
  int64_t units, length, rows, columns;
};
FixedProducts fixed_products(const Call&);
const Attributes& transposed_a();  // of matmul
// The operands and the result of the matmul of some units from `first` on.
struct UnitProducts {
  View in[2], out;
};
UnitProducts unit_products(const Call&, int64_t first, int64_t units, float* out);

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

}  // namespace invar::ops
