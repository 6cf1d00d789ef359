// log of binary32, correctly rounded for every input (spec/functions.md; shown by `invar_prove
// log`, docs/evidence/functions.md).
#pragma once

#include "num/log/rows.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F log(F x) {
  L offset = exponent_offset(to_double(x));  // subnormals of binary32 are normal in binary64
  F special = patch_hard_cases(outside_domain(x, 0.0f), x,
                               {{0x3c413d3a, 0xc08e158f},
                                {0x41178feb, 0x400fe5e7},
                                {0x4c5d65a5, 0x418f034b},
                                {0x65d890d3, 0x4254d1f9},
                                {0x6f31a8ec, 0x42845a89}});
  D e = exponent_of(offset);
  if constexpr (kLogByRows) return unless(special, to_float(add_exponent(e, log_by_row(offset))));
  D r = sub(significand_of(offset), set1_d(1.0));
  return unless(special, to_float(natural(e, r)));
}

}  // namespace invar::num::INVAR_ISA_NS
