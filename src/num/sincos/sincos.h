// sin and cos of binary32 (spec/functions.md functions.3), correctly rounded for every input (`invar_prove
// sin`, `invar_prove cos`; docs/evidence/functions.md). One element at a time: a model takes a few sines per
// token, for the angles of rotary embedding. Integers and double-doubles only, so the bits depend on nothing
// but x. Constants: tools/prove/sincos_constants.py.
#pragma once

#include "num/dd/dd.h"
#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

// |x| = (4 j + quadrant) pi/2 + r, |r| <= pi/4.
struct Reduced {
  DD r;
  uint32_t quadrant;
};

INVAR_INLINE Reduced reduce_angle(uint32_t mag) {
  if (mag <= 0x3f490fdau) return {{static_cast<double>(__builtin_bit_cast(float, mag)), 0.0}, 0};  // < pi/4
  // Payne and Hanek: |x| = m 2^e, and the bits of 2/pi with weight 2^(2-e) and above only add multiples of 4
  // to x 2/pi. The next 160 bits give it to 2^-134; no binary32 number comes nearer to a multiple of pi/2
  // than about 2^-30, so r has a relative error below 2^-80.
  constexpr uint32_t kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                     0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};
  uint64_t m = (mag & 0x7fffffu) | 0x800000u;
  uint32_t from = (mag >> 23) - 150 + 30;  // e + 30: the bit of weight 2^1 after multiplication by 2^e
  uint32_t limb[5];                        // x 2/pi mod 4 in units of 2^-30, 2^-62, ... 2^-158
  uint64_t carry = 0;
  for (int i = 4; i >= 0; --i) {
    const uint32_t* w = kTwoOverPi + from / 32 + i;
    uint64_t window = (static_cast<uint64_t>(w[0]) << 32 | w[1]) << (from % 32) >> 32;
    carry += m * window;
    limb[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  // The nearest integer is the quadrant; where that is the next one, 1 - fraction remains (complemented bits:
  // less 2^-158).
  bool next = limb[0] >> 29 & 1u;
  uint32_t flip = next ? ~0u : 0u;
  double f0 = static_cast<double>((limb[0] ^ flip) & 0x3fffffffu) * 0x1p-30;
  double f1 = static_cast<double>(limb[1] ^ flip) * 0x1p-62;
  double f2 = static_cast<double>(limb[2] ^ flip) * 0x1p-94;
  double f3 = static_cast<double>(limb[3] ^ flip) * 0x1p-126;
  DD f = fast_two_sum(f0, f1);
  DD r = dd_mul(fast_two_sum(f.hi, (f.lo + f2) + f3), DD{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54});
  return {next ? dd_neg(r) : r, (limb[0] >> 30) + (next ? 1u : 0u)};
}

// x or -x: the sign bit flipped by 0 or 0x80000000.
INVAR_INLINE float with_sign(float x, uint32_t flip) {
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, x) ^ flip);
}

// sin(r) = r + r z S(z), cos(r) = 1 + z C(z), z = r^2: the Taylor series to r^23 and r^22 (remainder below 2^-86
// relatively), the first three coefficients and all sums with them in double-double, the rest in binary64, where its
// rounding weighs less than 2^-70. Which of the two is a matter of data, not of a branch.
INVAR_INLINE DD sin_or_cos(DD r, uint32_t cosine) {
  constexpr double kTail[2][8] = {
      {-0x1.761b41316381ap-75, 0x1.71b8ef6dcf572p-66, -0x1.2f49b46814157p-57, 0x1.952c77030ad4ap-49,
       -0x1.ae7f3e733b81fp-41, 0x1.6124613a86d09p-33, -0x1.ae64567f544e4p-26, 0x1.71de3a556c734p-19},
      {-0x1.0ce396db7f853p-70, 0x1.e542ba4020225p-62, -0x1.6827863b97d97p-53, 0x1.ae7f3e733b81fp-45,
       -0x1.93974a8c07c9dp-37, 0x1.1eed8eff8d898p-29, -0x1.27e4fb7789f5cp-22, 0x1.a01a01a01a01ap-16}};
  constexpr DD kHead[2][3] = {{{-0x1.a01a01a01a01ap-13, -0x1.a01a01a01a01ap-73},
                               {0x1.1111111111111p-7, 0x1.1111111111111p-63},
                               {-0x1.5555555555555p-3, -0x1.5555555555555p-57}},
                              {{-0x1.6c16c16c16c17p-10, 0x1.f49f49f49f49fp-65},
                               {0x1.5555555555555p-5, 0x1.5555555555555p-59},
                               {-0x1.0000000000000p-1, 0x0.0p+0}}};
  DD z = dd_mul(r, r);
  const double* tail = kTail[cosine];
  double t = tail[0];
  for (int i = 1; i < 8; ++i) t = __builtin_fma(t, z.hi, tail[i]);
  DD p = two_product(z.hi, t);
  for (int i = 0; i < 3; ++i) p = dd_mul(z, dd_add_smaller(kHead[cosine][i], p));
  DD one_or_r = cosine ? DD{1.0, 0.0} : r;
  return dd_add_smaller(one_or_r, dd_mul(one_or_r, p));
}

INVAR_INTERNAL float sin(float x) {
  uint32_t u = __builtin_bit_cast(uint32_t, x), mag = u & 0x7fffffffu;
  if (mag >= 0x7f800000u) return __builtin_bit_cast(float, 0x7fc00000u);  // infinity, NaN
  if (mag == 0) return x;
  Reduced a = reduce_angle(mag);
  uint32_t sign = (a.quadrant << 30 ^ u) & 0x80000000u;
  return with_sign(f32_from_dd(sin_or_cos(a.r, a.quadrant & 1u)), sign);
}

INVAR_INTERNAL float cos(float x) {
  uint32_t mag = __builtin_bit_cast(uint32_t, x) & 0x7fffffffu;
  if (mag >= 0x7f800000u) return __builtin_bit_cast(float, 0x7fc00000u);
  Reduced a = reduce_angle(mag);
  uint32_t sign = (a.quadrant + 1) << 30 & 0x80000000u;
  return with_sign(f32_from_dd(sin_or_cos(a.r, ~a.quadrant & 1u)), sign);
}

INVAR_INLINE F sin(F x) {
  float t[kW];
  store(t, x);
  for (int i = 0; i < kW; ++i) t[i] = sin(t[i]);
  return load(t);
}
INVAR_INLINE F cos(F x) {
  float t[kW];
  store(t, x);
  for (int i = 0; i < kW; ++i) t[i] = cos(t[i]);
  return load(t);
}

}  // namespace invar::num::INVAR_ISA_NS
