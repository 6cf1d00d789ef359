// pow(x, y) of two binary32 over lanes: the nearest number, with the special cases of IEEE 754-2019
// (spec/functions.md functions.26; docs/evidence/pow.md). 2^(y log2 |x|) in binary64, then a
// rounding test that proves the result; the lanes where it does not (one in 2^22 or so, and exact
// ties) take the scalar pow_cr, which proves or stops.
//
// Error (derived, not machine-checked). |x| = 2^e m, s = (m - 1) / (m + 1), log2 |x| = e + 2
// log2(e) s + u, u = s^3 P(s^2). All but u, which is at most 2^-6.6 of the logarithm, is carried in
// two words to 2^-100; u errs by 8 units of binary64 (2^-53) of its own and by the 2^-57.5 of P,
// both relatively to the logarithm 2^-55.9 in all, and with the products by y |t| 2^-55.7 for t = y
// log2 |x|. Where the result is neither 0 nor infinite |t| < 152: 2^-48.5, by log 2 2^-49.0
// relatively to the result; 2^g, |g| <= 1/2, errs by 2^-52 more. The test takes 2^-48.
#pragma once

#include "num/log/core.h"
#include "num/pow/pow.h"

namespace invar::num::INVAR_ISA_NS {

struct PowPair {
  D low, high;  // the exact a^y lies between them
};
// Takes finite a > 0 and finite y.
INVAR_INLINE PowPair pow_bounds(D a, D y) {
  constexpr double kP[] = {0x1.ec709dc3a0401p-1, 0x1.2776c50ef68f3p-1, 0x1.a61762b534b6ep-2,
                           0x1.484b091a92bb1p-2, 0x1.0c9e91c7d1b10p-2, 0x1.c4ff2c46480e7p-3,
                           0x1.afde0dd07fe15p-3};
  constexpr double kExp2[] = {0x1.0000000000000p+0,  0x1.62e42fefa39efp-1,  0x1.ebfbdff82c598p-3,
                              0x1.c6b08d704a0c2p-5,  0x1.3b2ab6fba1dc6p-7,  0x1.5d87fe78a526dp-10,
                              0x1.4309130975155p-13, 0x1.ffcbfc6712438p-17, 0x1.62bfd46781ef6p-20,
                              0x1.b524fad88ed30p-24, 0x1.e6065f532c950p-28, 0x1.e9d419696e0e9p-32};
  D one = set1_d(1.0), minus_one = set1_d(-1.0);
  L offset = exponent_offset(a);
  D m = significand_of(offset), e = exponent_of(offset);
  // -s in two words; m - 1 and m + 1 are exact.
  D minus_denominator = sub(minus_one, m), numerator = sub(m, one);
  D reciprocal = div(one, minus_denominator);
  D s = mul(numerator, reciprocal);
  D s_low = mul(fma(s, add(m, one), numerator), reciprocal);
  D c = set1_d(-0x1.71547652b82fep+1), c_low = set1_d(-0x1.777d0ffda0d24p-55);  // -2 log2(e)
  D head = mul(s, c);
  D head_low = fma(s, c, mul(head, minus_one));
  head_low = add(head_low, fma(s, c_low, mul(s_low, c)));
  D z = mul(s, s);
  D u = mul(mul(mul(s, minus_one), z), horner(z, kP));
  D l = add(e, head);  // |e| > |head| or e = 0
  D l_low = add(sub(head, sub(l, e)), add(head_low, u));
  D t = mul(y, l);
  D t_low = fma(y, l_low, fma(y, l, mul(t, minus_one)));
  D sum = add(t, t_low);
  D rest = clamp(sub(t_low, sub(sum, t)), -0x1p-45, 0x1p-45);  // half a unit of sum where that is not clamped
  sum = clamp(sum, -160.0, 140.0);
  D shifted = add(sum, set1_d(kRound));
  D n = sub(shifted, set1_d(kRound));
  D g = add(sub(sum, n), rest);
  D p = scale_by_low_bits(horner(g, kExp2), shifted);
  return {mul(p, set1_d(1 - 0x1p-48)), mul(p, set1_d(1 + 0x1p-48))};
}

INVAR_INLINE F pow(F x, F y) {
  F one = set1(1.0f), infinity = set1(__builtin_inff()), nan = set1(__builtin_nanf(""));
  F a = abs(x), b = abs(y);
  M ordinary = both(both(lt(zero(), a), lt(a, infinity)), lt(b, infinity));
  PowPair bounds = pow_bounds(to_double(select(ordinary, a, one)), to_double(select(ordinary, y, one)));
  F r = to_float(bounds.low), high = to_float(bounds.high);
  M unproved = both(ordinary, lt(r, high));
  if (any(unproved)) {
    float r_lane[kW], high_lane[kW], a_lane[kW], y_lane[kW];
    store(r_lane, r), store(high_lane, high), store(a_lane, select(ordinary, a, one)), store(y_lane, y);
    for (int i = 0; i < kW; ++i)
      if (r_lane[i] < high_lane[i]) r_lane[i] = pow_cr(a_lane[i], y_lane[i]);
    r = load(r_lane);
  }
  // |x| or |y| infinite, or x = 0: towards 0 or infinity, unless |x| = 1.
  F small = select(lt(zero(), y), zero(), infinity), large = select(lt(zero(), y), infinity, zero());
  F limit = select(eq(a, one), one, select(lt(a, one), small, large));
  r = select(ordinary, r, limit);
  F half = mul(y, set1(0.5f));
  M integral = eq(trunc(y), y);                         // infinity too
  M odd_or_fraction = lt(abs(trunc(half)), abs(half));  // among integers: odd
  r = select(both(integral, odd_or_fraction), flip_with(r, x), r);
  F negative = select(both(lt(x, zero()), lt(a, infinity)), one, zero());
  r = select(integral, r, select(lt(zero(), negative), nan, r));
  r = select(unordered(x, y), nan, r);
  return select(either(eq(y, zero()), eq(x, one)), one, r);
}

}  // namespace invar::num::INVAR_ISA_NS
