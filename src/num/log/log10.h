// log10 of binary32, correctly rounded for every input (spec/functions.md; shown by `invar_prove
// log10`, docs/evidence/functions.md).
#pragma once

#include "num/log/core.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F log10(F x) {
  // core.h times log10(e), as in log2.h.
  constexpr double kMinusP10[] = {-0x1.287a7636f4361p-2, -0x1.63c6277521362p-3, -0x1.fc3fa62559f8ap-4,
                                  -0x1.8b4de605995bap-4, -0x1.4373334eb59b8p-4, -0x1.10bb31f4a1ed0p-4,
                                  -0x1.040294bd1299ap-4};
  L offset = exponent_offset(to_double(x));
  D r = sub(significand_of(offset), set1_d(1.0)), e = exponent_of(offset);
  D s = minus_s(r), z = mul(s, s);
  D bracket = fma(horner(z, kMinusP10), z, mul(r, set1_d(0x1.bcb7b1526e50ep-2)));
  D low = fma(s, bracket, mul(r, set1_d(0x1.95355baaafad3p-57)));
  D l = fma(r, set1_d(0x1.bcb7b1526e50ep-2), low);
  l = fma(e, set1_d(-0x1.9dc1da994fd21p-59), l);
  F special = patch_hard_cases(outside_domain(x, 0.0f), x, {{0x0efeee7a, 0xc1e99d23}});
  return unless(special, to_float(fma(e, set1_d(0x1.34413509f79ffp-2), l)));
}

}  // namespace invar::num::INVAR_ISA_NS
