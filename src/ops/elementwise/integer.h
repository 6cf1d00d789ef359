// Graphs over integers and truth values, and those over single f32 numbers that lanes do not serve: spec.md elementwise.13 -
// elementwise.15.
#pragma once
#include <type_traits>

#include "num/convert/convert.h"
#include "num/inline.h"
#include "ops/elementwise/arithmetic.h"

namespace invar::ops::INVAR_ISA_NS::graph {

// T in two's complement modulo 2^n: unsigned arithmetic, whose overflow is defined.
template <class T>
concept Integer = std::is_integral_v<T>;
template <class T>
using Wrap = std::make_unsigned_t<T>;

template <Integer T>
INVAR_INLINE T add(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
}
template <Integer T>
INVAR_INLINE T sub(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
}
template <Integer T>
INVAR_INLINE T mul(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
}
template <Integer T>
INVAR_INLINE T neg(T a) {
  return static_cast<T>(Wrap<T>{0} - static_cast<Wrap<T>>(a));
}
template <Integer T>
INVAR_INLINE T abs(T a) {
  return a < 0 ? neg(a) : a;
}
template <Integer T>
INVAR_INLINE T sign(T a) {
  return static_cast<T>((a > 0) - (a < 0));
}
// elementwise.14: towards zero; by zero 0.
template <Integer T>
INVAR_INLINE T div(T a, T b) {
  return b == 0 ? T{0} : b == -1 ? neg(a) : static_cast<T>(a / b);
}
// The remainder of div, with the sign of a; by zero 0.
template <Integer T>
INVAR_INLINE T fmod(T a, T b) {
  return b == 0 || b == -1 ? T{0} : static_cast<T>(a % b);
}
// The remainder of the quotient rounded down, with the sign of b; by zero 0.
template <Integer T>
INVAR_INLINE T mod(T a, T b) {
  T r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}
template <Integer T>
INVAR_INLINE T max(T a, T b) {
  return a < b ? b : a;
}
template <Integer T>
INVAR_INLINE T min(T a, T b) {
  return b < a ? b : a;
}
template <Integer T>
INVAR_INLINE bool equal(T a, T b) {
  return a == b;
}
template <Integer T>
INVAR_INLINE bool less(T a, T b) {
  return a < b;
}
template <Integer T>
INVAR_INLINE bool greater(T a, T b) {
  return b < a;
}
template <Integer T>
INVAR_INLINE bool less_equal(T a, T b) {
  return a <= b;
}
template <Integer T>
INVAR_INLINE bool greater_equal(T a, T b) {
  return b <= a;
}

// Truth values: false is 0, true is any other byte; results are 0 or 1.
INVAR_INLINE bool logical_and(uint8_t a, uint8_t b) {
  return (a != 0) & (b != 0);
}
INVAR_INLINE bool logical_or(uint8_t a, uint8_t b) {
  return (a | b) != 0;
}
INVAR_INLINE bool logical_xor(uint8_t a, uint8_t b) {
  return (a != 0) != (b != 0);
}
INVAR_INLINE bool logical_not(uint8_t a) {
  return a == 0;
}
INVAR_INLINE bool equal(uint8_t a, uint8_t b) {
  return (a != 0) == (b != 0);
}

// elementwise.15: a copy. f32 comes as its bits, whose NaN becomes canonical.
template <Integer T>
INVAR_INLINE T where(uint8_t c, T a, T b) {
  return c ? a : b;
}
INVAR_INLINE uint32_t canonical(uint32_t u) {
  return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u;
}

// elementwise.8: x - y trunc(x / y), exact: the long division of the significands, 40 bits at a time.
INVAR_INLINE float fmod(float x, float y) {
  uint32_t u = num::f32_bits(x), sign = u & 0x80000000u, a = u & 0x7fffffffu,
           b = num::f32_bits(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0) return num::f32_from_bits(0x7fc00000u);
  if (a < b) return x;
  // Below 2^28 the quotient times y is exact in binary64, and so is the difference. The rounded quotient may be one too large.
  double p = num::f32_from_bits(a), d = num::f32_from_bits(b);
  if (p < d * 0x1p28) {
    double left = p - static_cast<double>(static_cast<int64_t>(p / d)) * d;
    float rest = static_cast<float>(left < 0 ? left + d : left);
    return num::f32_from_bits(sign | num::f32_bits(rest));
  }
  auto exponent = [](uint32_t v) {
    return v >> 23 ? static_cast<int>(v >> 23) : 1;
  };  // value = m 2^(e - 150)
  auto significand = [](uint32_t v) -> uint64_t { return v >> 23 ? (v & 0x7fffffu) | 0x800000u : v; };
  uint64_t n = significand(b), r = significand(a) % n;
  for (int e = exponent(a) - exponent(b); e > 0 && r != 0; e -= 40) r = (r << (e < 40 ? e : 40)) % n;
  if (r == 0) return num::f32_from_bits(sign);
  // r 2^(exponent(b) - 150), below y: normal or subnormal, exact either way.
  int top = 63 - __builtin_clzll(r), e = exponent(b) - (23 - top);
  uint32_t bits = e >= 1
                      ? static_cast<uint32_t>(r << (23 - top)) - 0x800000u + (static_cast<uint32_t>(e) << 23)
                      : static_cast<uint32_t>(r << (exponent(b) - 1));
  return num::f32_from_bits(sign | bits);
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
