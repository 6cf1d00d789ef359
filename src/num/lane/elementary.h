// What the elementary functions over lanes share.
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

// c0 + z (c1 + z (c2 + ...)), from the inside out.
INVAR_INLINE D horner(D, double c) {
  return set1_d(c);
}
template <class... C>
INVAR_INLINE D horner(D z, double c, C... higher) {
  return fma(horner(z, higher...), z, set1_d(c));
}

// x + kRound rounds |x| < 2^51 to an integer, which stays in the low bits; x + kRoundOdd leaves it there plus 1.
constexpr double kRound = 0x1.8p52, kRoundOdd = 0x1.8p52 + 1;

INVAR_INLINE F horner(F, float c) {
  return set1(c);
}
template <class... C>
INVAR_INLINE F horner(F z, float c, C... higher) {
  return fma(horner(z, higher...), z, set1(c));
}
// The coefficients as an array, where several functions share it.
template <int n>
INVAR_INLINE D horner(D z, const double (&c)[n]) {
  D p = set1_d(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) p = fma(p, z, set1_d(c[i]));
  return p;
}

// a, negated where the lowest bit of t is set.
INVAR_INLINE D flip_if_odd(D a, D t) {
  return from_bits(bit_xor(bits(a), shift_left<63>(bits(t))));
}

INVAR_INLINE I magnitude(F x) {
  return bit_and(bits(x), set1_i(0x7fffffff));
}
// y, or -y where x is negative.
INVAR_INLINE F flip_with(F y, F x) {
  return from_bits(bit_xor(bits(y), bit_and(bits(x), set1_i(INT32_MIN))));
}

// low <= |x| < limit, in one comparison of integers, so shifted that what is below low becomes large.
INVAR_INLINE M inside(F x, float low, float limit) {
  const uint32_t from = __builtin_bit_cast(uint32_t, low), size = __builtin_bit_cast(uint32_t, limit) - from;
  I shifted = add(magnitude(x), set1_i(static_cast<int32_t>(0x80000000u - from)));
  return gt(set1_i(static_cast<int32_t>(0x80000000u + size)), shifted);
}

// A result, and where that is certain.
struct Settled {
  F y;
  M sure;
};
// s + lo rounded; certain where s + lo (1 +- doubt) give one result (Ziv's test: rounding is monotonic, so all between give it).
// The error of s + lo matters only where a middle between two binary32 numbers is near. s is one of them, so |lo| is there at least
// 2^-25 |s|, and doubt = 2^(25-n) covers an error of 2^-n |s|. NaN is never certain.
INVAR_INLINE Settled settle(F s, F lo, float doubt) {
  F up = fma(lo, set1(1 + doubt), s), down = fma(lo, set1(1 - doubt), s);
  return {up, eq(up, down)};
}
// y where it is sure, else by `wide`.
template <F (*wide)(F)>
INVAR_INTERNAL F settle_rare(F x, F y, M sure) {
  return all(sure) ? y : select(sure, y, wide(x));
}

// The sign of x on y: y of the other sign must be zero.
INVAR_INLINE F or_sign(F y, F x) {
  return from_bits(bit_or(bits(y), bit_and(bits(x), set1_i(INT32_MIN))));
}

// y, but `y` of the list where x is its `x` (bits): for the few inputs of a function whose exact values lie so near the
// middle of two binary32 numbers that binary64 rounds onto the middle or past it. A list found by exhaustion; invar_prove
// would name one that is missing.
struct Given {
  uint32_t x, y;
};
template <int n>
INVAR_INLINE F given(F y, F x, const Given (&list)[n]) {
  for (const Given& g : list)
    y = select(eq(x, set1(__builtin_bit_cast(float, g.x))), set1(__builtin_bit_cast(float, g.y)), y);
  return y;
}
// y unless `special` is not 0: a long list and the limits of a domain, found beside the sequence and not after it.
INVAR_INLINE F unless(F special, F y) {
  return select(eq(special, zero()), y, special);
}

}  // namespace invar::num::INVAR_ISA_NS
