// atan2 of two binary32 numbers (spec/functions.md functions.34; docs/evidence/atan2.md).
//
// Lanes: the arc v of the quotient in binary64 (inverse_trig.h). With u = 2^-53, t, g and the sum
// have one rounding each, those of t z P weigh less than u/8 together: error below (|t| + |g|) u +
// v u + v 2^-59, which for k = 0 is 3.2 u v, and else, with |t|, |g| < 0.42 and v >= pi/8, below
// 3.3 u v. So it is below 2^-51 v; where both ends of an interval of 2^-49 v round to one binary32
// number, that is the result. For the others, about one pair in 2^24, and for infinities, NaN and 0
// / 0, double-double one lane at a time: some ten operations of relative error below 2^-98. Among
// 2^64 random pairs the nearest to a tie are at about 2^-88. Constants:
// tools/prove/coefficients/trigonometric_coefficients.py atan2.
#pragma once

#include "num/dd/dd.h"
#include "num/inverse_trig/inverse_trig.h"

namespace invar::num::INVAR_ISA_NS {

// atan(t) for a quotient 0 <= t <= 1: w = (t - c) / (1 + t c) with c = j/32 near t, so |w| <= 2^-6
// and the series to w^17 suffices (next term 2^-118). Where t < 2^-6, w = t, and even a correction
// far below 2^-106 t stays in the low part.
INVAR_INLINE DD atan_dd(DD t) {
  constexpr DD kAtan[] = {{0x0.0p+0, 0x0.0p+0},
                          {0x1.ffd55bba97625p-6, -0x1.5ec431444912cp-60},
                          {0x1.ff55bb72cfdeap-5, -0x1.c934d86d23f1dp-60},
                          {0x1.7ee182602f10fp-4, -0x1.cfb654c0c3d98p-58},
                          {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
                          {0x1.3d6eee8c6626cp-3, 0x1.61a3b0ce9281bp-57},
                          {0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58},
                          {0x1.b90d7529260a2p-3, 0x1.17b10d2e0e5abp-61},
                          {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                          {0x1.18bf5a30bf178p-2, 0x1.30ca4748b1bf9p-57},
                          {0x1.362773707ebccp-2, -0x1.963a544b672d8p-57},
                          {0x1.530ad9951cd4ap-2, -0x1.2566480884082p-57},
                          {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
                          {0x1.8b24d394a1b25p-2, 0x1.b6d0ba3748fa8p-56},
                          {0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56},
                          {0x1.c0db4c94ec9f0p-2, -0x1.cc1ce70934c34p-56},
                          {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                          {0x1.f40dd0b541418p-2, -0x1.a3992dc382a23p-57},
                          {0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56},
                          {0x1.1255d9bfbd2a9p-1, -0x1.2bdaee1c0ee35p-58},
                          {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
                          {0x1.2958e59308e31p-1, -0x1.09e73b0c6c087p-56},
                          {0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55},
                          {0x1.3f13fb89e96f4p-1, 0x1.ecf8b492644f0p-56},
                          {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
                          {0x1.538f57b89061fp-1, -0x1.1bb74abda520cp-55},
                          {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57},
                          {0x1.66d663923e087p-1, -0x1.6ea6febe8bbbap-56},
                          {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
                          {0x1.78f6bbd5d315ep-1, 0x1.406a089803740p-55},
                          {0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56},
                          {0x1.89ff5ff57f1f8p-1, -0x1.55b9a5e177a1bp-55},
                          {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}};
  int j = static_cast<int>(t.hi * 32 + 0.5);
  DD w = t;
  if (j) {
    DD c = {j / 32.0, 0.0};
    w = dd_div(dd_add(t, dd_neg(c)), dd_add(DD{1.0, 0.0}, dd_mul(t, c)));
  }
  DD z = dd_mul(w, w);
  double tail = 1.0 / 17;
  for (int n = 15; n >= 9; n -= 2) tail = __builtin_fma(-tail, z.hi, 1.0 / n);
  DD p = dd_mul(dd_neg(z), DD{tail, 0.0});
  p = dd_mul(dd_neg(z), dd_add_smaller(DD{0x1.2492492492492p-3, 0x1.2492492492492p-57}, p));
  p = dd_mul(dd_neg(z), dd_add_smaller(DD{0x1.999999999999ap-3, -0x1.999999999999ap-57}, p));
  p = dd_mul(dd_neg(z), dd_add_smaller(DD{0x1.5555555555555p-2, 0x1.5555555555555p-56}, p));
  DD a = dd_add_smaller(w, dd_mul(w, p));
  return j ? dd_add(kAtan[j], a) : a;
}

INVAR_INTERNAL float atan2_hard(float y, float x) {
  uint32_t uy = __builtin_bit_cast(uint32_t, y), ux = __builtin_bit_cast(uint32_t, x),
           sign = uy & 0x80000000u;
  uint32_t my = uy & 0x7fffffffu, mx = ux & 0x7fffffffu;
  bool left = ux >> 31;
  auto signed_bits = [sign](uint32_t u) { return __builtin_bit_cast(float, u | sign); };
  if (my > 0x7f800000u || mx > 0x7f800000u) return __builtin_bit_cast(float, 0x7fc00000u);
  if (my == 0x7f800000u && mx == 0x7f800000u) return signed_bits(left ? 0x4016cbe4u : 0x3f490fdbu);
  if (my == 0 || mx == 0x7f800000u) return signed_bits(left ? 0x40490fdbu : 0u);
  if (mx == 0 || my == 0x7f800000u) return signed_bits(0x3fc90fdbu);
  double a = static_cast<double>(__builtin_bit_cast(float, my)),
         b = static_cast<double>(__builtin_bit_cast(float, mx));
  bool steep = my > mx;
  double n = steep ? b : a, d = steep ? a : b;
  double q = n / d;
  DD r = atan_dd(fast_two_sum(q, __builtin_fma(-q, d, n) / d));  // the remainder is exact
  // steep: pi/2 - r or, to the left, pi/2 + r; else r or pi - r.
  if (steep != left) r = dd_neg(r);
  double k = steep ? 1.0 : left ? 2.0 : 0.0;
  if (k != 0) r = dd_add(DD{k * 0x1.921fb54442d18p+0, k * 0x1.1a62633145c07p-54}, r);
  return signed_bits(__builtin_bit_cast(uint32_t, f32_from_dd(r)));
}

INVAR_INLINE F atan2(F y, F x) {
  D a = to_double(abs(y)), b = to_double(abs(x)), zero_d = set1_d(0.0), one = set1_d(1.0);
  D beta = select(lt(mul(b, set1_d(0x1.a827999fcef32p-2)), a), one, zero_d);
  D alpha = select(lt(b, mul(a, set1_d(0x1.a827999fcef32p-2))), zero_d, one);
  Arc r = arc_of_ratio(a, b, alpha, beta);
  // To the left pi - arc: k becomes 4 - k, t and its powers change sign.
  M left = gt(set1_i(0), bits(x));
  D turn = to_double(select(left, set1(4.0f), zero())),
    sign = to_double(select(left, set1(-1.0f), set1(1.0f)));
  D v = arc_sum({fma(sign, r.k, turn), mul(sign, r.t), mul(sign, r.tz), r.p});
  F low = to_float(mul(v, set1_d(1 - 0x1p-49))), high = to_float(mul(v, set1_d(1 + 0x1p-49)));
  F result = flip_with(high, y);
  if (!any(either(lt(low, high), unordered(low, high)))) return result;
  float ty[kW], tx[kW], t[kW], s[kW];
  store(ty, y), store(tx, x), store(t, result), store(s, sub(high, low));
  for (int i = 0; i < kW; ++i)
    if (!(s[i] == 0)) t[i] = atan2_hard(ty[i], tx[i]);
  return load(t);
}

}  // namespace invar::num::INVAR_ISA_NS
