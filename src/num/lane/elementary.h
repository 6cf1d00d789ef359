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

// a, negated where the lowest bit of t is set.
INVAR_INLINE D flip_if_odd(D a, D t) {
  return from_bits(bit_xor(bits(a), shift_left<63>(bits(t))));
}

INVAR_INLINE I magnitude(F x) {
  return bit_and(bits(x), set1_i(0x7fffffff));
}
// y or -y where x is negative.
INVAR_INLINE F flip_with(F y, F x) {
  return from_bits(bit_xor(bits(y), bit_and(bits(x), set1_i(INT32_MIN))));
}

// y, but `result` where x is `input` (bits): for the few inputs of a function whose exact values lie nearer to a tie than its
// sequence can tell.
INVAR_INLINE F given(F y, F x, uint32_t input, uint32_t result) {
  M here = eq(x, set1(__builtin_bit_cast(float, input)));
  return select(here, set1(__builtin_bit_cast(float, result)), y);
}

}  // namespace invar::num::INVAR_ISA_NS
