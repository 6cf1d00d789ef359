// elementwise.8: fmod, x - y trunc(x / y), exact.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/lane/elementary.h"

namespace invar::ops::INVAR_ISA_NS::graph {

// fmod for any two numbers: long division of the significands, 40 bits at a time.
INVAR_INTERNAL float fmod_one(float x, float y) {
  uint32_t u = num::f32_bits(x), sign = u & 0x80000000u, a = u & 0x7fffffffu,
           b = num::f32_bits(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0) return num::f32_from_bits(0x7fc00000u);
  if (a < b) return x;
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

INVAR_INTERNAL F fmod_far(F x, F y, F r, M known) {
  float x_lane[kW], y_lane[kW], lane[kW], is_known[kW];
  store(x_lane, x), store(y_lane, y), store(lane, r), store(is_known, select(known, set1(1.0f), zero()));
  for (int i = 0; i < kW; ++i)
    if (is_known[i] == 0) lane[i] = fmod_one(x_lane[i], y_lane[i]);
  return load(lane);
}

// For quotients below 2^50 binary64 has the nearest integer n with an error of at most 1/16, and
// the remainder, at most 9/16 |y| on either side, is a multiple of the last place of x or y: exact.
INVAR_INLINE F fmod(F x, F y) {
  F a = abs(x), b = abs(y);
  M near = both(lt(a, mul(b, set1(0x1p50f))), lt(b, set1(__builtin_inff())));
  D p = to_double(a), d = to_double(b), none = set1_d(0.0), rounder = set1_d(kRound);
  D n = sub(rounder, add(div(p, d), rounder));
  D left = fma(n, d, p);
  left = select(lt(left, none), add(left, d), left);
  F r = or_sign(to_float(left), x);
  return all(near) ? r : fmod_far(x, y, r, near);
}
// elementwise.8: the remainder of the floored quotient; a zero has the sign of y.
INVAR_INLINE F mod(F x, F y) {
  const F r = fmod(x, y);
  const M apart = either(both(lt(r, zero()), lt(zero(), y)), both(lt(zero(), r), lt(y, zero())));
  return select(eq(r, zero()), or_sign(zero(), y), select(apart, add(r, y), r));
}

}  // namespace invar::ops::INVAR_ISA_NS::graph
