// erf and erfc of binary32, correctly rounded for every input (spec/functions.md functions.8; shown by `invar_prove
// erf` and `invar_prove erfc`, docs/evidence/functions.md), in binary64 with one final rounding. All coefficients are
// positive, so no sum loses anything by cancellation. Constants: tools/prove/erf_coefficients.py.
#pragma once

#include "num/exp/parts.h"

namespace invar::num::INVAR_ISA_NS {

// erf x = x P(z)/Q(z), z = x^2, relative error 2^-53.
INVAR_INLINE F erf(F x) {
  // Beyond this the result is 1.
  D d = to_double(clamp(x, -3.9375f, 3.9375f));
  D z = mul(d, d);
  D p = horner(z, 0x1.20dd750429b6dp+0, 0x1.a0abd181f9071p-3, 0x1.f88d7a9a9f11dp-5, 0x1.74068f5b0421ap-8,
               0x1.66acc06cb8e11p-11, 0x1.3ccd57b0e651dp-15, 0x1.34ce14995b636p-19, 0x1.2f10bfdd0ea3fp-24,
               0x1.0f04fa2a1151ep-29, 0x1.c7447a50e1165p-37);
  D q = horner(z, 1.0, 0x1.06fba3cd4119ep-1, 0x1.01a188d1a7db7p-3, 0x1.3dfd91c09f4c3p-6, 0x1.12bb6cd291927p-9,
               0x1.5c40e092eabc0p-13, 0x1.487e068cfac73p-17, 0x1.c5ef89473fedcp-22, 0x1.af57056875813p-27,
               0x1.d08945c2135dep-33, 0x1.7fb4459060bffp-42);
  return to_float(div(mul(d, p), q));
}

// erfc |x| = e^-z N(|x|)/M(|x|), relative error of the fraction 2^-54.8;  erfc(-|x|) = 2 - erfc |x|.
INVAR_INLINE F erfc(F x) {
  // Beyond these the result is 2 or 0.
  F limited = clamp(x, -4.0f, 10.0625f);
  D d = to_double(limited), a = to_double(abs(limited));
  D n = horner(a, 1.0, 0x1.0bec81f708ef7p+1, 0x1.16e773824a2ddp+1, 0x1.7102ee588f0c8p+0, 0x1.51fbc6930f955p-1,
               0x1.ba192799bf7bdp-3, 0x1.9c63be7ee976ep-5, 0x1.0908ddbe61cc4p-7, 0x1.ac3b17e5b7d11p-11,
               0x1.4eb7685c6c9f5p-15);
  D m = horner(a, 1.0, 0x1.9c5b3c791dcacp+1, 0x1.3419676513c35p+2, 0x1.19df214432fd1p+2, 0x1.5e9c177d35544p+1,
               0x1.36c4001b181d1p+0, 0x1.8f1a6d23c9d0ep-2, 0x1.706f8a38f9d72p-4, 0x1.d6eb9e8fc2ba2p-7,
               0x1.7b827b5656a05p-10, 0x1.28a27ce45080ep-14);
  // -x^2 is exact and has at most 48 bits, so it is reduced like a binary32 number.
  ExpParts e = exp_parts(mul(sub(set1_d(0.0), d), d));
  D one = set1_d(1.0);
  D power = scale_by_low_bits(fma(fma(e.r, fma(e.r, e.s, e.c), one), e.r, one), e.t);
  D y = div(mul(power, n), m);
  return to_float(select(lt(d, set1_d(0.0)), sub(set1_d(2.0), y), y));
}

}  // namespace invar::num::INVAR_ISA_NS
