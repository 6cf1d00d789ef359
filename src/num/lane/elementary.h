// Helpers of the elementary functions over lanes: Horner's rule, rounding tests, exceptional
// inputs.
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

// c0 + z (c1 + z (c2 + ...)), Horner's rule.
INVAR_INLINE D horner(D, double c) {
  return set1_d(c);
}
template <class... C>
INVAR_INLINE D horner(D z, double c, C... higher) {
  return fma(horner(z, higher...), z, set1_d(c));
}

// x + kRound rounds |x| < 2^51 to an integer, which stays in the low bits; x + kRoundOdd leaves it
// there plus 1.
constexpr double kRound = 0x1.8p52, kRoundOdd = 0x1.8p52 + 1;

INVAR_INLINE F horner(F, float c) {
  return set1(c);
}
template <class... C>
INVAR_INLINE F horner(F z, float c, C... higher) {
  return fma(horner(z, higher...), z, set1(c));
}
// The coefficients as an array, if several functions share it.
template <int n>
INVAR_INLINE D horner(D z, const double (&c)[n]) {
  D p = set1_d(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) p = fma(p, z, set1_d(c[i]));
  return p;
}

// a, negated if the lowest bit of t is set.
INVAR_INLINE D flip_if_odd(D a, D t) {
  return from_bits(bit_xor(bits(a), shift_left<63>(bits(t))));
}

INVAR_INLINE I magnitude(F x) {
  return bit_and(bits(x), set1_i(0x7fffffff));
}
// y, negated if x is negative.
INVAR_INLINE F flip_with(F y, F x) {
  return from_bits(bit_xor(bits(y), bit_and(bits(x), set1_i(INT32_MIN))));
}

// low <= |x| < limit, in one integer comparison: the offset makes values below low large.
INVAR_INLINE M inside(F x, float low, float limit) {
  const uint32_t from = __builtin_bit_cast(uint32_t, low), size = __builtin_bit_cast(uint32_t, limit) - from;
  I shifted = add(magnitude(x), set1_i(static_cast<int32_t>(0x80000000u - from)));
  return gt(set1_i(static_cast<int32_t>(0x80000000u + size)), shifted);
}

// A result, and the lanes in which it is certainly rounded correctly.
struct RoundedResult {
  F y;
  M sure;
};
// s + lo rounded; certain if s + lo (1 +- doubt) have one rounded result (Ziv's test: rounding is
// monotonic, so everything between has it too). The error of s + lo matters only near the midpoint
// of two binary32 numbers. s is one of them, so there |lo| is at least 2^-25 |s|, and doubt =
// 2^(25-n) covers an error of 2^-n |s|. NaN is never certain.
INVAR_INLINE RoundedResult round_if_certain(F s, F lo, float doubt) {
  F up = fma(lo, set1(1 + doubt), s), down = fma(lo, set1(1 - doubt), s);
  return {up, eq(up, down)};
}
// y where it is certain, else wide(x).
template <F (*wide)(F)>
INVAR_INTERNAL F resolve_uncertain(F x, F y, M sure) {
  return all(sure) ? y : select(sure, y, wide(x));
}

// The sign of x on y; if y has the other sign it must be zero.
INVAR_INLINE F or_sign(F y, F x) {
  return from_bits(bit_or(bits(y), bit_and(bits(x), set1_i(INT32_MIN))));
}

// y, but the listed `y` where x has the bits of a listed `x`: for the few hard-to-round inputs of a
// function, whose exact values are so near the midpoint of two binary32 numbers that binary64
// rounds to the midpoint or past it. The list was found by exhaustive search; invar_prove would
// report a missing one.
struct HardCase {
  uint32_t x, y;
};
template <int n>
INVAR_INLINE F patch_hard_cases(F y, F x, const HardCase (&list)[n]) {
  for (const HardCase& g : list)
    y = select(eq(x, set1(__builtin_bit_cast(float, g.x))), set1(__builtin_bit_cast(float, g.y)), y);
  return y;
}
// y unless `special` is nonzero: a long list and the limits of a domain, computed in parallel to
// the main sequence.
INVAR_INLINE F unless(F special, F y) {
  return select(eq(special, zero()), y, special);
}

}  // namespace invar::num::INVAR_ISA_NS
