// Conversion of one number between any two dtypes: cast.2 - cast.6. One rounding per
// conversion.
#pragma once
#include "base/dtype.h"
#include "num/convert/convert.h"

namespace invar::ops {

// A number as read: an integer, or a double that holds the source value exactly.
struct Number {
  bool integer;
  int64_t i;  // if `large`, the bits of an integer of 2^63 or more
  double d;
  bool large = false;
};

// A double that rounds to f32, bf16 or f16 as `i` itself would: the leading 53 bits, the last one
// sticky.
INVAR_INLINE double sticky_double(int64_t i, bool large) {
  const bool negative = i < 0 && !large;
  uint64_t mag = negative ? 0 - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
  double d =
      mag >> 53 ? static_cast<double>(mag >> 11 | ((mag & 2047) != 0)) * 2048.0 : static_cast<double>(mag);
  return negative ? -d : d;
}

// A float that rounds to bf16 or f16 as `d` itself would: truncated with a sticky last bit (round
// to odd).
INVAR_INLINE float sticky_float(double d) {
  float f = static_cast<float>(d);
  double back = static_cast<double>(f);
  if (back == d || d != d) return f;
  uint32_t u = num::f32_bits(f);
  if (__builtin_fabs(back) > __builtin_fabs(d)) --u;
  return num::f32_from_bits(u | 1);
}

INVAR_INLINE Number read_number(const void* p, DType t, int64_t at) {
  auto integer = [](int64_t i) { return Number{true, i, 0}; };
  auto real = [](double d) { return Number{false, 0, d}; };
  switch (t) {
    case DType::f32: return real(static_cast<const float*>(p)[at]);
    case DType::bf16: return real(num::f32_from_bf16(static_cast<const uint16_t*>(p)[at]));
    case DType::f16: return real(num::f32_from_f16(static_cast<const uint16_t*>(p)[at]));
    case DType::f64: return real(static_cast<const double*>(p)[at]);
    case DType::i64: return integer(static_cast<const int64_t*>(p)[at]);
    case DType::i32: return integer(static_cast<const int32_t*>(p)[at]);
    case DType::i8: return integer(static_cast<const int8_t*>(p)[at]);
    case DType::u8: return integer(static_cast<const uint8_t*>(p)[at]);
    case DType::boolean: return integer(static_cast<const uint8_t*>(p)[at] != 0);
    case DType::i16: return integer(static_cast<const int16_t*>(p)[at]);
    case DType::u16: return integer(static_cast<const uint16_t*>(p)[at]);
    case DType::u32: return integer(static_cast<const uint32_t*>(p)[at]);
    case DType::u64: {
      const uint64_t u = static_cast<const uint64_t*>(p)[at];
      return {true, static_cast<int64_t>(u), 0, (u >> 63) != 0};
    }
  }
  return integer(0);
}

// cast.5: truncated, saturated to [lo, hi], NaN -> 0; integers keep their low bits.
INVAR_INLINE int64_t to_integer(const Number& n, int64_t lo, int64_t hi) {
  if (n.integer) return n.i;
  if (n.d != n.d) return 0;
  if (n.d <= static_cast<double>(lo)) return lo;
  if (n.d >= static_cast<double>(hi)) return hi;  // for i64 this double is 2^63
  return static_cast<int64_t>(n.d);
}
INVAR_INLINE uint64_t to_u64(const Number& n) {
  if (n.integer) return static_cast<uint64_t>(n.i);
  if (!(n.d > 0)) return 0;
  return n.d >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(n.d);
}

// `from`: the dtype that n was read from.
INVAR_INLINE void write_number(void* p, DType t, int64_t at, const Number& n, DType from) {
  double d = n.integer ? sticky_double(n.i, n.large) : n.d;
  switch (t) {
    case DType::f32: {
      float f = static_cast<float>(d);
      bool widened =
          from == DType::f32 || from == DType::bf16 || from == DType::f16;  // cast.2: subnormals stay
      bool tiny = !widened && __builtin_fabs(d) < 0x1p-126;                 // cast.4: before rounding
      if (tiny) f = static_cast<float>(__builtin_copysign(0.0, d));
      static_cast<float*>(p)[at] = f == f ? f : num::f32_from_bits(0x7fc00000);
      return;
    }
    case DType::bf16: {
      uint16_t h = num::bf16_from_f32(sticky_float(d));
      if (from == DType::bf16 && d == d)
        h = static_cast<uint16_t>(num::f32_bits(static_cast<float>(d)) >> 16);
      static_cast<uint16_t*>(p)[at] = h;
      return;
    }
    case DType::f16: static_cast<uint16_t*>(p)[at] = num::f16_from_f32(sticky_float(d)); return;
    case DType::f64: {
      double r = n.large     ? static_cast<double>(static_cast<uint64_t>(n.i))
                 : n.integer ? static_cast<double>(n.i)
                             : n.d;
      static_cast<double*>(p)[at] = r == r ? r : __builtin_bit_cast(double, uint64_t{0x7ff8} << 48);
      return;
    }
    case DType::i64: static_cast<int64_t*>(p)[at] = to_integer(n, INT64_MIN, INT64_MAX); return;
    case DType::i32:
      static_cast<int32_t*>(p)[at] = static_cast<int32_t>(to_integer(n, INT32_MIN, INT32_MAX));
      return;
    case DType::i8: static_cast<int8_t*>(p)[at] = static_cast<int8_t>(to_integer(n, -128, 127)); return;
    case DType::u8: static_cast<uint8_t*>(p)[at] = static_cast<uint8_t>(to_integer(n, 0, 255)); return;
    case DType::i16:
      static_cast<int16_t*>(p)[at] = static_cast<int16_t>(to_integer(n, INT16_MIN, INT16_MAX));
      return;
    case DType::u16:
      static_cast<uint16_t*>(p)[at] = static_cast<uint16_t>(to_integer(n, 0, UINT16_MAX));
      return;
    case DType::u32:
      static_cast<uint32_t*>(p)[at] = static_cast<uint32_t>(to_integer(n, 0, UINT32_MAX));
      return;
    case DType::u64: static_cast<uint64_t*>(p)[at] = to_u64(n); return;
    case DType::boolean:
      static_cast<uint8_t*>(p)[at] = n.integer ? n.i != 0 : n.d != 0;
      return;  // NaN -> true
  }
}

}  // namespace invar::ops
