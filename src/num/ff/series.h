// Series and square roots of float-float numbers.
#pragma once

#include "num/ff/ff.h"

namespace invar::num::INVAR_ISA_NS {

// c0 + z (c1 + z (c2 + ...)), each coefficient in two parts; of the last `tail` only the first
// part, in binary32: for those that contribute less than 2^-20 of the sum.
template <int tail, int n>
INVAR_INLINE FF ff_horner(FF z, const float (&c)[n][2]) {
  F f = zero();
  for (int i = n - 1; i >= n - tail; --i) f = fma(f, z.hi, set1(c[i][0]));
  FF q = {f, zero()};
  for (int i = n - tail - 1; i >= 0; --i) q = ff_add(set1_ff(c[i][0], c[i][1]), ff_mul(q, z));
  return q;
}
// Takes a > 0.
INVAR_INLINE FF ff_sqrt(FF a) {
  F q = sqrt(a.hi), rest = add(fma(neg(q), q, a.hi), a.lo);
  return ff_fast_two_sum(q, div(rest, add(q, q)));
}

}  // namespace invar::num::INVAR_ISA_NS
