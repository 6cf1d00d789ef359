// The range reduction of Payne and Hanek, for angles above 2^28: x = m 2^e, and x / pi mod 2 is m
// (2^e / pi mod 2), whose first part is exact. No binary32 number is closer to a multiple of pi/2
// than about 2^-30, and the three parts of the table give the fraction to 2^-105. So the relative
// error of the fraction is that of its two roundings.
#pragma once

#include "num/lane/elementary.h"
#include "num/sincos/inverse_pi.h"

namespace invar::num::INVAR_ISA_NS {

// x s / pi = n + offset + f, |f| <= 1/2, for s = 1 or 2. The result is f, and t = n + round, which
// has n in its low bits. For other x, f is any value.
struct Fraction {
  D f, t;
};
INVAR_INLINE Fraction huge_fraction(F x, double s, double offset, double round) {
  I mag = magnitude(x), low = set1_i(0x4d800000), high = set1_i(0x7f7fffff);
  mag = select(gt(low, mag), low, select(gt(mag, high), high, mag));
  I row = sub(shift_right<23>(mag), set1_i(155));
  D m = mul(to_double(bit_or(bit_and(mag, set1_i(0x7fffff)), set1_i(0x800000))), set1_d(s));
  D w1 = lookup(kInversePi[1], row), p = mul(m, lookup(kInversePi[0], row));
  D t = add(sub(fma(m, w1, p), set1_d(offset)), set1_d(round));
  D rest = sub(p, add(sub(t, set1_d(round)), set1_d(offset)));
  return {fma(m, lookup(kInversePi[2], row), fma(m, w1, rest)), t};
}
// NaN where x is infinity or NaN.
INVAR_INLINE F nan_unless_finite(F y, F x) {
  M finite = gt(set1_i(0x7f800000), magnitude(x));
  return select(finite, y, from_bits(set1_i(0x7fc00000)));
}

}  // namespace invar::num::INVAR_ISA_NS
