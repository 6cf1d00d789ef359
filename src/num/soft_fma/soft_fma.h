// Fused multiply-add for processors without the instruction (WebAssembly): a * b + c rounded once,
// to nearest even. C libraries that round in binary64 and then again, or that ask for a rounding
// mode which the processor lacks, are wrong for few inputs.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "num/inline.h"

namespace invar::num::soft {

// The sum of two numbers, rounded to odd: of the two neighbours of an inexact sum the one whose
// last bit is 1. Rounding that to a format with at least two bits less rounds the exact sum
// (Boldo and Melquiond, IEEE Transactions on Computers 57, 2008). No intermediate result may
// overflow.
INVAR_INLINE double add_to_odd(double a, double b) {
  const double s = a + b, t = s - a, error = (a - (s - t)) + (b - t);
  const uint64_t bits = std::bit_cast<uint64_t>(s);
  if (error == 0 || (bits & 1)) return s;
  const bool away = !((bits ^ std::bit_cast<uint64_t>(error)) >> 63);  // the exact sum is larger in size
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

// Whether rounding `sum`, itself the rounded sum of two binary32 products or numbers, to binary32
// could differ from rounding the exact sum: it is a tie, or the result is subnormal.
INVAR_INLINE bool rounds_twice(double sum) {
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  const uint64_t size = bits & 0x7fffffffffffffff;
  return (bits & 0x1fffffff) == 0x10000000 || size - 1 < 0x3810000000000000 - 1;  // 2^-126
}

// The product of two binary32 numbers is a binary64 number.
INVAR_INLINE float fma(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b), sum = product + c;
  return static_cast<float>(rounds_twice(sum) ? add_to_odd(product, c) : sum);
}

// A number that is not zero, infinite or NaN as significand * 2^exponent; bit 62 is the highest.
struct Unpacked {
  uint64_t significand;
  int exponent;
};
INVAR_INLINE Unpacked unpack(double x) {
  const uint64_t size = std::bit_cast<uint64_t>(x) & 0x7fffffffffffffff;
  const int field = static_cast<int>(size >> 52);
  const uint64_t significand = field ? (size & 0xfffffffffffff) | uint64_t{1} << 52 : size;
  const int shift = std::countl_zero(significand) - 1;
  return {significand << shift, (field ? field : 1) - 1075 - shift};
}

// Every binary64 input, by integers.
INVAR_INTERNAL double fma_by_integers(double a, double b, double c) {
  using Wide = unsigned __int128;
  constexpr uint64_t kInfinity = 0x7ff0000000000000, kSize = 0x7fffffffffffffff;
  const uint64_t x = std::bit_cast<uint64_t>(a), y = std::bit_cast<uint64_t>(b),
                 z = std::bit_cast<uint64_t>(c);
  const bool finite = (x & kSize) < kInfinity && (y & kSize) < kInfinity;
  // NaN, infinities and zeros are exact; so is a finite product with an infinite addend.
  if (!finite || (x & kSize) == 0 || (y & kSize) == 0) return a * b + c;
  if ((z & kSize) >= kInfinity) return c + c;
  const Unpacked p = unpack(a), q = unpack(b);
  bool sign = (x ^ y) >> 63;
  // Bit 125 of the larger term is its highest or the one above it, so that a sum fits.
  Wide sum = Wide{p.significand} * q.significand;  // bit 124 or 125
  int exponent = p.exponent + q.exponent;
  if (!(sum >> 125)) sum <<= 1, exponent -= 1;  // now bit 125
  if ((z & kSize) != 0) {
    const Unpacked r = unpack(c);
    Wide other = Wide{r.significand} << 63;  // bit 125
    int at = r.exponent - 63;
    bool other_sign = z >> 63;
    if (at > exponent || (at == exponent && other > sum)) {
      std::swap(sum, other), std::swap(exponent, at), std::swap(sign, other_sign);
    }
    // Bits that are shifted out leave their trace in the last bit.
    const int shift = exponent - at;
    if (shift > 126)
      other = 1;
    else if (shift > 0)
      other = other >> shift | static_cast<Wide>((other << (128 - shift)) != 0);
    sum = sign == other_sign ? sum + other : sum - other;
    if (sum == 0) return 0.0;  // an exact cancellation
  }
  // sum * 2^exponent, rounded to 53 bits, or to fewer where the result is subnormal.
  const uint64_t high = static_cast<uint64_t>(sum >> 64);
  const int zeros = high ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<uint64_t>(sum));
  const int top = 127 - zeros;          // the highest bit
  const int64_t size = exponent + top;  // of the number: 2^size <= |number|
  if (size > 1023) return sign ? -__builtin_inf() : __builtin_inf();
  int drop = size < -1022 ? -1074 - exponent : top - 52;  // bits below the last place
  uint64_t kept;
  if (drop <= 0) {
    kept = static_cast<uint64_t>(sum << -drop);
  } else if (drop > 127) {
    kept = 0;  // below half of the least number
  } else {
    const Wide rest = sum & ((Wide{1} << drop) - 1), half = Wide{1} << (drop - 1);
    kept = static_cast<uint64_t>(sum >> drop);
    kept += rest > half || (rest == half && (kept & 1));
  }
  // The implicit bit carries into the exponent's field; so does a sum that was rounded up.
  const uint64_t field = size < -1022 ? 0 : static_cast<uint64_t>(size + 1022);
  return std::bit_cast<double>((field << 52) + kept | static_cast<uint64_t>(sign) << 63);
}

// Inputs for which no product or sum of fma() below overflows or loses what underflows.
INVAR_INLINE bool moderate(double x, double least, double most) {
  const double size = __builtin_fabs(x);
  return size == 0 || (size >= least && size <= most);
}

INVAR_INLINE double fma(double a, double b, double c) {
  if (!moderate(a, 0x1p-450, 0x1p450) || !moderate(b, 0x1p-450, 0x1p450) || !moderate(c, 0x1p-900, 0x1p900))
    return fma_by_integers(a, b, c);
  // The exact product as a sum (Dekker).
  const double ta = a * 0x1.0000002p27, tb = b * 0x1.0000002p27;
  const double ah = ta - (ta - a), al = a - ah, bh = tb - (tb - b), bl = b - bh;
  const double p = a * b, low = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  // The exact sum of three numbers, the two lower ones rounded to odd.
  const double t = low + c, x = t - c, t_low = (c - (t - x)) + (low - x);
  const double v = p + t, y = v - p, v_low = (p - (v - y)) + (t - y);
  const double r = v + add_to_odd(t_low, v_low);
  return r == 0 ? p + c : r;  // the sign of a zero
}

}  // namespace invar::num::soft
