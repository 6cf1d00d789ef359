// binary64 elements of tensors: bits, the canonical NaN, maximum and minimum. Plain C++, usable by
// any row.
#pragma once
#include <cstdint>

#include "num/inline.h"

namespace invar::num {

constexpr uint64_t kSign64 = uint64_t{1} << 63, kInfinity64 = uint64_t{0x7ff} << 52,
                   kNan64 = uint64_t{0x7ff8} << 48;

INVAR_INLINE uint64_t f64_bits(double x) {
  return __builtin_bit_cast(uint64_t, x);
}
INVAR_INLINE double f64_from_bits(uint64_t u) {
  return __builtin_bit_cast(double, u);
}
INVAR_INLINE uint64_t canonical64(uint64_t u) {
  return (u & ~kSign64) > kInfinity64 ? kNan64 : u;
}
// formats.12, how a result becomes an element: subnormal numbers stay, NaN becomes canonical.
INVAR_INLINE double canonicalize64(double x) {
  return x == x ? x : f64_from_bits(kNan64);
}
INVAR_INLINE double abs64(double x) {
  return f64_from_bits(f64_bits(x) & ~kSign64);
}
// formats.7: of equals only zeros differ, AND of their bits is the larger, OR the smaller.
INVAR_INLINE double maximum64(double a, double b) {
  if (a == b) return f64_from_bits(f64_bits(a) & f64_bits(b));
  return a > b || a != a ? a : b;
}
INVAR_INLINE double minimum64(double a, double b) {
  if (a == b) return f64_from_bits(f64_bits(a) | f64_bits(b));
  return a < b || a != a ? a : b;
}

}  // namespace invar::num
