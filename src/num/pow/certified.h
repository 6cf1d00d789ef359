// 2^(y log2 x) in double-double, then a rounding that is proved or refused.
//
// Error. Each double-double operation errs by less than 2^-100 relatively (dd.h). log: 22 Horner
// steps damped by s^2 < 0.03, remainder s^46/47 < 2^-120; with the quotient s and log2(e), log2 x
// errs by less than 2^-97 relatively (k + log2 m cannot cancel: |log2 m| <= 1/2). y log2 x is below
// 2^8 in what follows, so its absolute error is below 2^-88.9, and 2^f, by Taylor to degree 27 with
// remainder below 2^-130, errs by less than 2^-88 relatively. The bound used is 2^-85.
#pragma once

#include "num/convert/convert.h"
#include "num/dd/dd.h"

namespace invar::num {

struct ProvedValue {
  float value;
  bool proved;
};

// a / b to 2^-104.
INVAR_INTERNAL DD quotient(double a, double b) {
  double q = a / b;
  return fast_two_sum(q, __builtin_fma(-q, b, a) / b);
}

// 2^n for a normal result.
INVAR_INTERNAL double power_of_two(int n) {
  return __builtin_bit_cast(double, static_cast<uint64_t>(n + 1023) << 52);
}
// v = m 2^e with 2^52 <= m < 2^53, v normal and positive.
struct ScaledSignificand {
  uint64_t m;
  int e;
};
INVAR_INTERNAL ScaledSignificand split_significand(double v) {
  uint64_t u = __builtin_bit_cast(uint64_t, v);
  return {(u & 0xfffffffffffffu) | uint64_t{1} << 52, static_cast<int>(u >> 52) - 1075};
}

// log2 of x = 2^k m, 1/sqrt2 < m < sqrt2, by log m = 2 atanh s, s = (m - 1) / (m + 1).
INVAR_INTERNAL DD log2_of(double x) {
  const ScaledSignificand parts = split_significand(x);
  int k = parts.e + 53;
  double m = static_cast<double>(parts.m) * 0x1p-53;
  if (m < 0x1.6a09e6p-1) m *= 2, --k;
  DD s = quotient(m - 1, m + 1), z = dd_mul(s, s), p = quotient(1, 45);
  for (int i = 43; i >= 1; i -= 2) p = dd_add(dd_mul(p, z), quotient(1, i));
  DD log_m = dd_mul(dd_mul(s, p), DD{2, 0}), log2_e = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
  return dd_add(DD{static_cast<double>(k), 0}, dd_mul(log_m, log2_e));
}

INVAR_INTERNAL DD exp2_of(DD f) {  // |f| <= 1/2
  DD r = dd_mul(f, DD{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}), p = {1, 0};
  for (int i = 27; i >= 1; --i) p = dd_add(DD{1, 0}, dd_mul(dd_mul(p, r), quotient(1, i)));
  return p;
}

// The same with odd m.
INVAR_INTERNAL ScaledSignificand odd_part(double v) {
  ScaledSignificand p = split_significand(v);
  while (p.m % 2 == 0) p.m /= 2, ++p.e;
  return p;
}

// Whether x^y is exactly b, the midpoint of two neighbours (an odd part below 2^25). With odd parts
// a of x and c of b and y = p / 2^k, p odd or k = 0: the powers of two must agree, and a^p =
// c^(2^k), so that a is the 2^k-th power of some w with w^p = c.
INVAR_INTERNAL bool is_exactly(float x, float y, double b) {
  ScaledSignificand a = odd_part(x), c = odd_part(b);
  if (a.e * static_cast<double>(y) != c.e) return false;  // 8 bits times 24: exact
  if (a.m == 1) return c.m == 1;
  if (y < 0) return false;  // 1 / a^|y| is no binary fraction
  double p = y;
  uint64_t w = a.m;
  while (p != __builtin_floor(p)) {
    p *= 2;
    uint64_t root = static_cast<uint64_t>(__builtin_sqrt(static_cast<double>(w)));  // exact: w < 2^24
    if (root * root != w || root == 1) return false;
    w = root;
  }
  uint64_t power = 1;
  for (; p >= 1 && power < uint64_t{1} << 25; p -= 1) power *= w;
  return p < 1 && power == c.m;
}

// x^y as in pow.h, and whether its rounding is proved.
INVAR_INTERNAL ProvedValue pow_certified(float x, float y) {
  if (!(x > 0) || !(x < __builtin_inff()) || !(y - y == 0)) return {f32_from_bits(0x7fc00000u), true};
  DD t = dd_mul(log2_of(x), DD{y, 0});
  if (t.hi > 129) return {__builtin_inff(), true};
  if (t.hi < -151) return {0.0f, true};
  double n = (t.hi + 0x1.8p52) - 0x1.8p52, scale = power_of_two(static_cast<int>(n));
  DD r = exp2_of(dd_add(t, DD{-n, 0}));
  r = {r.hi * scale, r.lo * scale};
  double error = r.hi * 0x1p-85;
  float low = f32_from_dd({r.hi, r.lo - error}), high = f32_from_dd({r.hi, r.lo + error});
  if (low == high) return {low, true};  // rounding is monotonic and the exact value lies between
  double above = high < __builtin_inff() ? static_cast<double>(high) : 0x1p128;
  float even = f32_bits(low) & 1u ? high : low;
  return {even, is_exactly(x, y, (static_cast<double>(low) + above) / 2)};
}

}  // namespace invar::num
