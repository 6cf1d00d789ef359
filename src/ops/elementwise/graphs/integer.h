// Graphs over integers and bool: elementwise.13 - elementwise.17.
#pragma once
#include <cstdint>
#include <type_traits>

#include "num/inline.h"

namespace invar::ops::INVAR_ISA_NS::graph {

// Two's complement arithmetic of T modulo 2^n, through unsigned types, whose overflow is defined.
template <class T>
concept Integer = std::is_integral_v<T>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <Integer T>
INVAR_INLINE T add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <Integer T>
INVAR_INLINE T sub(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <Integer T>
INVAR_INLINE T mul(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}
template <Integer T>
INVAR_INLINE T neg(T a) {
  return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
}
template <Integer T>
INVAR_INLINE T abs(T a) {
  return a < 0 ? neg(a) : a;
}
template <Integer T>
INVAR_INLINE T sign(T a) {
  return static_cast<T>((a > 0) - (a < 0));
}
// elementwise.14: truncated; 0 on division by zero.
template <Integer T>
INVAR_INLINE T div(T a, T b) {
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return neg(a);
  return b == 0 ? T{0} : static_cast<T>(a / b);
}
// The remainder of div, with the sign of a; 0 on division by zero.
template <Integer T>
INVAR_INLINE T fmod(T a, T b) {
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
  return b == 0 ? T{0} : static_cast<T>(a % b);
}
// The remainder of the floored quotient, with the sign of b; 0 on division by zero.
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

// elementwise.16: bitwise operations.
template <Integer T>
INVAR_INLINE T bitwise_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <Integer T>
INVAR_INLINE T bitwise_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <Integer T>
INVAR_INLINE T bitwise_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <Integer T>
INVAR_INLINE T bitwise_not(T a) {
  return static_cast<T>(~a);
}
// The shift count is b as an unsigned number; a count of the width or more shifts everything out.
template <Integer T>
INVAR_INLINE T shift_left(T a, T b) {
  constexpr Unsigned<T> kBits = 8 * sizeof(T);
  auto n = static_cast<Unsigned<T>>(b);
  return n < kBits ? static_cast<T>(static_cast<Unsigned<T>>(a) << n) : T{0};
}
template <Integer T>
INVAR_INLINE T shift_right(T a, T b) {
  constexpr Unsigned<T> kBits = 8 * sizeof(T);
  auto n = static_cast<Unsigned<T>>(b);
  if (n < kBits) return static_cast<T>(a >> n);
  return static_cast<T>(std::is_signed_v<T> ? a >> (kBits - 1) : 0);
}

// elementwise.17: the low bits of a^b; for b < 0 those of 1 / a^-b truncated, 0 on division by
// zero.
template <Integer T>
INVAR_INLINE T pow(T a, T b) {
  if (b < 0) return a == 1 ? a : a == -1 ? (b & 1 ? a : T{1}) : T{0};
  Unsigned<T> r = 1, square = static_cast<Unsigned<T>>(a);
  for (auto n = static_cast<Unsigned<T>>(b); n; n >>= 1, square *= square)
    if (n & 1) r *= square;
  return static_cast<T>(r);
}

// The store rule of a result.
template <Integer T>
INVAR_INLINE T as_stored(T x) {
  return x;
}

// Bool operands: a byte; 0 is false, any other value true. Results are 0 or 1.
struct Bool8 {
  uint8_t byte;
};
INVAR_INLINE bool logical_and(Bool8 a, Bool8 b) {
  return (a.byte != 0) & (b.byte != 0);
}
INVAR_INLINE bool logical_or(Bool8 a, Bool8 b) {
  return (a.byte | b.byte) != 0;
}
INVAR_INLINE bool logical_xor(Bool8 a, Bool8 b) {
  return (a.byte != 0) != (b.byte != 0);
}
INVAR_INLINE bool logical_not(Bool8 a) {
  return a.byte == 0;
}
INVAR_INLINE bool equal(Bool8 a, Bool8 b) {
  return (a.byte != 0) == (b.byte != 0);
}

// elementwise.15: a copy. f32 is passed as its bits; a NaN becomes canonical.
template <Integer T>
INVAR_INLINE T where(uint8_t c, T a, T b) {
  return c ? a : b;
}
INVAR_INLINE uint32_t canonical(uint32_t u) {
  return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u;
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
