// asin, acos and atan of binary32 (spec/functions.md functions.32 and functions.33), correctly
// rounded for every input (`invar_prove asin`, `invar_prove acos`, `invar_prove atan`;
// docs/evidence/functions.md). Constants: tools/prove/coefficients/trigonometric_coefficients.py
// asin atan.
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

// asin(s) = s + u for 0 <= s <= 1/2, where s = |x| or, above 1/2, s = sqrt((1 - |x|) / 2): asin |x|
// = pi/2 - 2 asin(s). Relative error of the polynomial 2^-59.8. |x| > 1 and NaN make s NaN.
struct HalfArc {
  D s, u;
  M big;
};
INVAR_INLINE HalfArc half_arc(F x) {
  I mag = magnitude(x);
  M big = gt(mag, set1_i(0x3f000000));
  MD wide = widen(big);
  D a = to_double(from_bits(mag));
  D h = fma(a, set1_d(-0.5), set1_d(0.5));  // exact where |x| > 1/2
  D z = select(wide, h, mul(a, a)), s = select(wide, sqrt(h), a);
  D p = horner(z, 0x1.5555555555577p-3, 0x1.333333332e1d7p-4, 0x1.6db6db72067c3p-5, 0x1.f1c71a9a612bcp-6,
               0x1.6e8bde357e3ffp-6, 0x1.1c49fd309612cp-6, 0x1.ca1e4bde65f16p-7, 0x1.759020e3f57d1p-7,
               0x1.60fff6c6f49f2p-7, 0x1.e995aa7ea282cp-9, 0x1.627f8e45fcf05p-6, -0x1.5667f5d274d99p-6,
               0x1.0ac783d4e1577p-5);
  return {s, mul(mul(s, z), p), big};
}

INVAR_INLINE F asin(F x) {
  HalfArc h = half_arc(x);
  D low = fma(set1_d(2.0), h.u, set1_d(-0x1.1a62633145c07p-54));
  D big = sub(set1_d(0x1.921fb54442d18p+0), fma(set1_d(2.0), h.s, low));
  return flip_with(to_float(select(widen(h.big), big, add(h.s, h.u))), x);
}

// acos(x) = k pi/2 + c (s + u), s and u with the sign of x: k = 1, c = -1 up to |x| = 1/2, beyond
// it k = 0 or, for negative x, 2, and c = 2.
INVAR_INLINE F acos(F x) {
  HalfArc h = half_arc(x);
  F two = set1(2.0f);
  D c = to_double(flip_with(select(h.big, two, set1(-1.0f)), x));
  D k = to_double(select(h.big, select(gt(set1_i(0), bits(x)), two, zero()), set1(1.0f)));
  D g = fma(c, h.s, fma(c, h.u, mul(k, set1_d(0x1.1a62633145c07p-54))));
  F y = to_float(fma(k, set1_d(0x1.921fb54442d18p+0), g));
  return patch_hard_cases(y, x, {{0x328885a3, 0x3fc90fdb}, {0x39826222, 0x3fc907b5}});
}

// atan(y / x) = k pi/4 + g in two parts, for y, x >= 0 of 24 bits: g = t + t z P(z), z = t^2, |t|
// <= tan(pi/8) (relative error 2^-59.3), where
//   y <= x tan(pi/8): k = 0, t = y / x; then up to x tan(3 pi/8): k = 1, t = (y - x) / (y + x);
//   beyond: k = 2, t = -x / y.
// alpha = 1 unless beyond, beta = 1 unless k = 0. Numerator and denominator are exact, so t has one
// rounding.
struct Arc {
  D k, t, tz, p;  // g = t + tz p
};
INVAR_INLINE Arc arc_of_ratio(D y, D x, D alpha, D beta) {
  D t = div(sub(mul(alpha, y), mul(beta, x)), fma(alpha, x, mul(beta, y)));
  D z = mul(t, t);
  D p = horner(z, -0x1.555555555553bp-2, 0x1.9999999995495p-3, -0x1.249249229792ap-3, 0x1.c71c70de1cc4ap-4,
               -0x1.745cf803102c8p-4, 0x1.3b110a9361747p-4, -0x1.10eb17fb7a8aep-4, 0x1.df0666cdea61fp-5,
               -0x1.9cab7735ed4f0p-5, 0x1.37738252ffa3bp-5, -0x1.24966386b97cdp-6);
  return {add(sub(beta, alpha), set1_d(1.0)), t, mul(t, z), p};
}
// k pi/4 + g.
INVAR_INLINE D arc_sum(Arc a) {
  D g = add(a.t, fma(a.tz, a.p, mul(a.k, set1_d(0x1.1a62633145c07p-55))));
  return fma(a.k, set1_d(0x1.921fb54442d18p-1), g);
}

INVAR_INLINE F atan(F x) {
  I mag = magnitude(x);
  // The result is pi/2 rounded from 2^26 on; the limit keeps infinity out.
  D a = clamp(to_double(from_bits(mag)), 0.0, 0x1p30);
  F one = set1(1.0f);
  D alpha = to_double(select(gt(mag, set1_i(0x401a827a)), zero(), one));
  D beta = to_double(select(gt(mag, set1_i(0x3ed413cd)), one, zero()));
  F y = to_float(arc_sum(arc_of_ratio(a, set1_d(1.0), alpha, beta)));
  return flip_with(patch_hard_cases(y, from_bits(mag), {{0x3d8d6b23, 0x3d8d31c3}}), x);
}

}  // namespace invar::num::INVAR_ISA_NS
