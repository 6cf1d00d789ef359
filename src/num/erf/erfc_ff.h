// erfc in float-float arithmetic (num/ff/ff.h) where that decides the result, else in binary64
// (erf.h), with equal bits. The rational approximation is that of erf.h. Constants:
// tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/erf/erf.h"
#include "num/exp/exp_ff.h"
#include "num/ff/series.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_TABLE float kErfcNumeratorFF[][2] = {{0x1p+0f, 0x0p+0f},
                                           {0x1.0bec82p+1f, -0x1.1ee212p-28f},
                                           {0x1.16e774p+1f, -0x1.f6d748p-25f},
                                           {0x1.7102eep+0f, 0x1.623c32p-26f},
                                           {0x1.51fbc6p-1f, 0x1.261f2ap-26f},
                                           {0x1.ba1928p-3f, -0x1.99021p-29f},
                                           {0x1.9c63bep-5f, 0x1.fba5dcp-31f},
                                           {0x1.0908dep-7f, -0x1.0678dp-33f},
                                           {0x1.ac3b18p-11f, -0x1.a482fp-39f},
                                           {0x1.4eb768p-15f, 0x1.71b27ep-41f}};
INVAR_TABLE float kErfcDenominatorFF[][2] = {{0x1p+0f, 0x0p+0f},
                                             {0x1.9c5b3cp+1f, 0x1.e4772cp-25f},
                                             {0x1.341968p+2f, -0x1.35d87ap-23f},
                                             {0x1.19df22p+2f, -0x1.779a06p-23f},
                                             {0x1.5e9c18p+1f, -0x1.059558p-24f},
                                             {0x1.36c4p+0f, 0x1.b181dp-28f},
                                             {0x1.8f1a6ep-2f, -0x1.b86c5ep-27f},
                                             {0x1.706f8ap-4f, 0x1.c7ceb8p-31f},
                                             {0x1.d6eb9ep-7f, 0x1.1f8574p-32f},
                                             {0x1.7b827cp-10f, -0x1.5352cp-35f},
                                             {0x1.28a27cp-14f, 0x1.c8a102p-39f}};

// erfc |x| = e^-z N / M, z = x^2 in two parts;  erfc(-|x|) = 2 - erfc |x|.
INVAR_INLINE F erfc_ff(F x) {
  F a = abs(x), d = clamp(a, 0x1p-40f, 9.2f);
  FF z = ff_two_product(d, d), arg = {d, zero()};
  ReducedFF r = reduce_ln2_ff(neg(z.hi));
  FF f = ff_fast_two_sum(r.h, sub(r.l, z.lo));
  FF power = ff_add_smaller(set1_ff(1.0f, 0.0f), expm1_ff_fraction(f.hi, f.lo));
  FF n = ff_horner<0>(arg, kErfcNumeratorFF), m = ff_horner<0>(arg, kErfcDenominatorFF);
  FF w = ff_div(ff_mul(ff_fast_two_sum(power.hi, power.lo), ff_fast_two_sum(n.hi, n.lo)),
                ff_fast_two_sum(m.hi, m.lo));
  RoundedResult right = round_if_certain(w, 0x1p-15f);
  F scale = from_bits(add(set1_i(0x3f800000), shift_left<23>(bits(r.t))));
  FF s = ff_two_sum(set1(2.0f), neg(mul(w.hi, scale)));
  RoundedResult left = round_if_certain({s.hi, sub(s.lo, mul(w.lo, scale))}, 0x1p-16f);
  M negative = lt(x, zero()), below = lt(x, set1(-3.9f));
  F v = select(negative, select(below, set1(2.0f), left.y), mul(right.y, scale));
  M sure =
      either(both(left.sure, between(x, -3.91f, -0x1p-40f)), both(right.sure, between(x, 0x1p-40f, 9.19f)));
  sure = either(sure, below);
  return resolve_uncertain<erfc_wide>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
