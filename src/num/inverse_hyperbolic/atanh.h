// atanh of binary32, correctly rounded for every input (spec/functions.md; shown by `invar_prove
// atanh`, docs/evidence/functions.md).
//
// atanh(a) = log((1 + a) / (1 - a)) / 2 = k log(2)/2 + atanh(s), s = (1 + a - p (1 - a)) / (1 + a +
// p (1 - a)), p = 2^k: the quotient of two exact numbers, and a itself where k = 0. The difference
// of the bits of two numbers is their quotient's logarithm to within 0.086 2^52, so rounding it to
// k leaves 2/3 < (1 + s) / (1 - s) < 3/2, |s| < 1/5. atanh(s) = s + s z Q(z), z = s^2. Constants:
// tools/prove/coefficients/log_coefficients.py (atanh).
#pragma once

#include "num/log/core.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F atanh(F x) {
  F a = abs(x), one = set1(1.0f);
  D d = to_double(a), one_d = set1_d(1.0);
  L quotient = sub(bits(add(one_d, d)), bits(sub(one_d, d)));
  L offset = add(quotient, set1_l(kOneBits + (int64_t{1} << 51)));
  D p = from_bits(bit_and(offset, set1_l(kExponentField)));
  D difference = sub(one_d, p), sum = add(one_d, p);
  D s = div(fma(d, sum, difference), fma(d, difference, sum)), z = mul(s, s);
  D q = horner(z, 0x1.5555555555555p-2, 0x1.9999999999f18p-3, 0x1.24924923de528p-3, 0x1.c71c72df7cf9dp-4,
               0x1.745cac3874569p-4, 0x1.3b29d20b4b924p-4, 0x1.0e8c32bc710e5p-4, 0x1.169d45f561cc7p-4);
  D l = fma(mul(s, z), q, s);
  D k = exponent_of(offset);
  F y = to_float(fma(k, set1_d(0x1.62e42fefa39efp-2), fma(k, set1_d(0x1.abc9e3b39803fp-57), l)));
  F at_or_above = select(eq(a, one), set1(__builtin_inff()), set1(__builtin_nanf("")));
  return flip_with(select(lt(a, one), y, at_or_above), x);
}

}  // namespace invar::num::INVAR_ISA_NS
