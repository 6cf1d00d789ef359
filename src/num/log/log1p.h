// log1p(x) = log(1 + x) of binary32, correctly rounded for every input (spec/functions.md; shown by
// `invar_prove log1p`, docs/evidence/functions.md).
#pragma once

#include "num/log/core.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F log1p(F x) {
  D d = to_double(x);
  L offset = exponent_offset(add(d, set1_d(1.0)));
  // 1 + x = 2^e (1 + r), so r = x 2^-e + (2^-e - 1): x itself where e = 0, exact below x = 2^50,
  // and -e rounded later.
  D scale = from_bits(sub(set1_l(2 * kOneBits), bit_and(offset, set1_l(kExponentField))));
  D r = fma(d, scale, sub(scale, set1_d(1.0)));
  F y = or_sign(to_float(natural(exponent_of(offset), r)), x);  // log1p(-0) = -0
  F special = patch_hard_cases(outside_domain(x, -1.0f), x,
                               {{0x35400003, 0x353fffff},
                                {0x3710001b, 0x370ffff3},
                                {0x41078feb, 0x400fe5e7},
                                {0x65d890d3, 0x4254d1f9},
                                {0x6f31a8ec, 0x42845a89},
                                {0xb53ffffd, 0xb5400001},
                                {0xb70fffe5, 0xb710000d},
                                {0xbb0ec8c4, 0xbb0ef0a5}});
  return unless(special, y);
}

}  // namespace invar::num::INVAR_ISA_NS
