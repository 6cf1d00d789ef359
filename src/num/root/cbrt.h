// The cube root of binary32, correctly rounded for every input (spec/functions.md; shown by
// `invar_prove cbrt`, docs/evidence/functions.md).
//
// With d = |x|: the upper 32 bits of d, divided by -3 and shifted, are those of a number z near
// d^(-1/3). Then e = 1 - d z^3 is below 0.11, and z (1 - e)^(-1/3), by a polynomial of degree 4,
// improves z to 2^-23. A second such step, d^(1/3) = d z^2 (1 - e)^(-2/3), reaches 2^-66: e
// corrects two thirds of the rounding error of d z^2. There is no division. Constants:
// tools/prove/coefficients/cbrt_coefficients.py.
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F cbrt(F x) {
  D minus_d = to_double(neg(abs(x)));
  // 2^52 + h with h the upper 32 bits of d; then 2^52 + kRootBits - h/3.
  D h = from_bits(bit_or(shift_right<33>(shift_left<1>(bits(minus_d))), set1_l(0x4330000000000000)));
  D t = fma(h, set1_d(-1.0 / 3.0), set1_d(0x1.55555aa943eb4p+52));
  D z = from_bits(shift_left<32>(bits(t)));
  D e = fma(mul(mul(z, z), minus_d), z, set1_d(1.0));
  z = mul(z, horner(e, 1.0, 0x1.555435879e969p-2, 0x1.c71a71f56e659p-3, 0x1.655629c7271b6p-3,
                    0x1.29f7cf0f2b9cep-3));
  D y = mul(mul(z, z), minus_d);  // -d z^2
  e = fma(y, z, set1_d(1.0));
  y = fma(mul(y, e), fma(e, set1_d(5.0 / 9.0), set1_d(2.0 / 3.0)), y);
  F r = flip_with(abs(to_float(y)), x);
  return select(lt(abs(x), set1(__builtin_inff())), r, x);
}

}  // namespace invar::num::INVAR_ISA_NS
