// The scalar truth of fixed-point sums: spec/ops/fixed.md fixed.2 and fixed.4.
#pragma once
#include <cmath>

#include "num/fixed/fixed_point.h"

namespace invar::num::reference {

// fixed.2
static inline int64_t fixed_point(float v) {
  if (!(std::fabs(v) < num::kFixedLimit)) return 0;
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(v) * 0x1p49));
}

// fixed.4: of a unit with elements at(0) ... at(n - 1).
template <class At>
static uint64_t fixed_magnitude(int64_t n, At at) {
  bool small = true;
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float x = std::fabs(at(i));
    small = small && x < num::kFixedLimit;  // false for NaN
    largest = x > largest ? x : largest;
  }
  const double scaled = static_cast<double>(largest) * 0x1p16;
  return small ? static_cast<uint64_t>(std::ceil(scaled)) : uint64_t{1} << 30;
}

}  // namespace invar::num::reference
