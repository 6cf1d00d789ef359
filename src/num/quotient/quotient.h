// Quotients of many weights by one sum, equal to division and the store rule (softmax.4), for
// processors on which division is slow: GPU division leaves its fast path for small dividends, of
// which softmax has many.
//
// With r = 1 / s rounded to nearest, q within one unit of a / s and e = a - q s (exact), q + e r
// rounds to a / s rounded to nearest (P. Markstein, IBM J. Res. Dev. 34(1), 1990; J.-M. Muller et
// al., Handbook of Floating-Point Arithmetic, "Newton-Raphson-based division with an FMA"). a r is
// within two units, the first correction within one, the second is the result.
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

struct Divisor {
  F s, r;
};
// Takes 1 <= s < 2^60, or NaN.
INVAR_INLINE Divisor divisor(F s) {
  return {s, div(set1(1.0f), s)};
}
// canonicalize(x / s) for x = 0 or 2^-126 <= x <= 1, up to canonicalize(). The sequence is scaled
// by 2^64, which keeps e exact. Division computes the quotients so close to 2^-126 that they round
// as subnormals; smaller quotients are 0 by the store rule.
INVAR_INLINE F quotient(F x, Divisor d) {
  F a = mul(x, set1(0x1p64f)), q = mul(a, d.r);
  q = fma(fma(neg(q), d.s, a), d.r, q);
  q = fma(fma(neg(q), d.s, a), d.r, q);
  F y = mul(q, set1(0x1p-64f));
  M near = both(lt(set1(0x1.fffffp-63f), q), lt(q, set1(0x1p-62f)));
  return __builtin_expect(any(near), false) ? select(near, div(x, d.s), y) : y;
}

}  // namespace invar::num::INVAR_ISA_NS
