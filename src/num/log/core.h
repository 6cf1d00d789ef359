// The common core of the logarithms: x = 2^e (1 + r) with 1 + r between sqrt(1/2) and sqrt(2),
// log(1 + r), and the results of special inputs. No table; one division. Constants:
// tools/prove/coefficients/log_coefficients.py 7.
//
// With s = r / (2 + r) and z = s^2:  log(1 + r) = 2 atanh(s) = r - s (r - z P(z)),  P within
// 2^-57.5 of it relatively to the logarithm. r is exact and the bracket, half of r^2 or less,
// weighs little beside it: for e = 0 as for any other e the result errs by little more than its own
// last rounding, half a unit of binary64.
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

constexpr int64_t kExponentField = 0x7ff0000000000000, kOneBits = 0x3ff0000000000000;
constexpr int64_t kSqrtHalfBits = 0x3fe6a09e00000000;

// For a normal d > 0 the field is (e + 1023) 2^52, and below it are the bits of 1 + r above those
// of sqrt(1/2).
INVAR_INLINE L exponent_offset(D d) {
  return sub(bits(d), set1_l(kSqrtHalfBits - kOneBits));
}
INVAR_INLINE D exponent_of(L offset) {
  D biased = from_bits(bit_or(shift_right<52>(offset), set1_l(0x4330000000000000)));  // 2^52 + e + 1023
  return sub(biased, set1_d(0x1p52 + 1023));
}
INVAR_INLINE D significand_of(L offset) {
  return from_bits(add(bit_and(offset, set1_l(0x000fffffffffffff)), set1_l(kSqrtHalfBits)));
}

INVAR_INLINE D minus_s(D r) {
  return div(r, sub(set1_d(-2.0), r));
}
INVAR_TABLE double kMinusP[] = {-0x1.5555555555558p-1, -0x1.99999999952d7p-2, -0x1.2492492df281ap-2,
                                -0x1.c71c62e3f11e6p-3, -0x1.7462b51cb66b1p-3, -0x1.39fe51a7c18f9p-3,
                                -0x1.2b5900de53b32p-3};
// log(2^e) + l
INVAR_INLINE D add_exponent(D e, D l) {
  return fma(e, set1_d(0x1.62e42fefa39efp-1), fma(e, set1_d(0x1.abc9e3b39803fp-56), l));
}
// log(2^e (1 + r))
INVAR_INLINE D natural(D e, D r) {
  D s = minus_s(r), z = mul(s, s);
  return add_exponent(e, fma(s, fma(horner(z, kMinusP), z, r), r));
}

// The result for special inputs, else 0: with the logarithm's argument 0 at `pole`, -infinity
// there, NaN below it, x itself for +infinity and NaN.
INVAR_INLINE F outside_domain(F x, float pole) {
  F at_or_below = select(eq(x, set1(pole)), set1(-__builtin_inff()), set1(__builtin_nanf("")));
  F r = select(lt(set1(pole), x), zero(), at_or_below);
  return select(lt(x, set1(__builtin_inff())), r, x);
}

}  // namespace invar::num::INVAR_ISA_NS
