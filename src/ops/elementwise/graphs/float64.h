// Graphs over binary64: elementwise.19. Scalar, in plain C++ without contraction.
#pragma once
#include "num/log/binary64.h"

namespace invar::ops::INVAR_ISA_NS::graph {

using num::f64_bits, num::f64_from_bits, num::kInfinity64, num::kNan64, num::kSign64;

INVAR_INLINE uint64_t canonical(uint64_t u) {
  return num::canonical64(u);
}
// The store rule of a result.
INVAR_INLINE double as_stored(double x) {
  return num::canonicalize64(x);
}

INVAR_INLINE double add(double a, double b) {
  return a + b;
}
INVAR_INLINE double sub(double a, double b) {
  return a - b;
}
INVAR_INLINE double mul(double a, double b) {
  return a * b;
}
INVAR_INLINE double div(double a, double b) {
  return a / b;
}
INVAR_INLINE double neg(double a) {
  return -a;
}
INVAR_INLINE double abs(double a) {
  return num::abs64(a);
}
INVAR_INLINE double sign(double a) {
  return a > 0 ? 1.0 : a < 0 ? -1.0 : a == a ? 0.0 : a;
}
INVAR_INLINE double sqrt(double a) {
  return __builtin_sqrt(a);
}
INVAR_INLINE double reciprocal(double a) {
  return 1.0 / a;
}
INVAR_INLINE double floor(double a) {
  return __builtin_floor(a);
}
INVAR_INLINE double ceil(double a) {
  return __builtin_ceil(a);
}
INVAR_INLINE double trunc(double a) {
  return __builtin_trunc(a);
}
INVAR_INLINE double round(double a) {
  return __builtin_rint(a);
}
INVAR_INLINE double max(double a, double b) {
  return num::maximum64(a, b);
}
INVAR_INLINE double min(double a, double b) {
  return num::minimum64(a, b);
}
INVAR_INLINE double relu(double a) {
  return max(a, 0.0);
}

// functions.40, functions.41
INVAR_INTERNAL double exp_f64(double x) {
  return num::INVAR_ISA_NS::exp64(x);
}
INVAR_INTERNAL double log_f64(double x) {
  return num::INVAR_ISA_NS::log64(x);
}

// fmod by long division of the significands, 11 bits at a time; the remainder is below 2^53.
INVAR_INTERNAL double fmod(double x, double y) {
  uint64_t u = f64_bits(x), a = u & ~kSign64, b = f64_bits(y) & ~kSign64;
  if (a >= kInfinity64 || b > kInfinity64 || b == 0) return f64_from_bits(kNan64);
  if (a < b) return x;
  auto exponent = [](uint64_t v) { return v >> 52 ? static_cast<int>(v >> 52) : 1; };  // m 2^(e - 1075)
  auto significand = [](uint64_t v) {
    constexpr uint64_t kOne = uint64_t{1} << 52;
    return v >> 52 ? (v & (kOne - 1)) | kOne : v;
  };
  uint64_t n = significand(b), r = significand(a) % n;
  for (int e = exponent(a) - exponent(b); e > 0 && r != 0; e -= 11) r = (r << (e < 11 ? e : 11)) % n;
  if (r == 0) return f64_from_bits(u & kSign64);
  // r 2^(exponent(b) - 1075), below y: normal or subnormal, exact either way.
  const int up = __builtin_clzll(r) - 11, e = exponent(b) - up;
  const uint64_t whole = e >= 1 ? (r << up) + (static_cast<uint64_t>(e - 1) << 52) : r << (exponent(b) - 1);
  return f64_from_bits((u & kSign64) | whole);
}
// elementwise.8: the remainder of the floored quotient; a zero has the sign of y.
INVAR_INLINE double mod(double x, double y) {
  const double r = fmod(x, y);
  if (r == 0) return f64_from_bits(f64_bits(y) & kSign64);
  return (r < 0 && y > 0) || (r > 0 && y < 0) ? r + y : r;
}

INVAR_INLINE bool equal(double a, double b) {
  return a == b;
}
INVAR_INLINE bool less(double a, double b) {
  return a < b;
}
INVAR_INLINE bool greater(double a, double b) {
  return b < a;
}
INVAR_INLINE bool less_equal(double a, double b) {
  return a <= b;
}
INVAR_INLINE bool greater_equal(double a, double b) {
  return b <= a;
}
INVAR_INLINE bool isnan(double a) {
  return a != a;
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
