// tan in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the result, else in
// binary64 (tan.h): the same bits. Taylor series of sin and cos. Constants:
// tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/ff/series.h"
#include "num/sincos/sincos_ff.h"
#include "num/tan/tan.h"

namespace invar::num::INVAR_ISA_NS {

// (-1)^k / (2 k)! and (-1)^k / (2 k + 1)!
INVAR_TABLE float kCosFF[][2] = {{0x1p+0f, 0x0p+0f},
                                 {-0x1p-1f, 0x0p+0f},
                                 {0x1.555556p-5f, -0x1.555556p-30f},
                                 {-0x1.6c16c2p-10f, 0x1.27d27ep-35f},
                                 {0x1.a01a02p-16f, -0x1.7f97fap-42f},
                                 {-0x1.27e4fcp-22f, 0x1.10ec14p-47f},
                                 {0x1.1eed8ep-29f, 0x1.ff1b12p-54f},
                                 {-0x1.93974ap-37f, -0x1.180f94p-62f},
                                 {0x1.ae7f3ep-45f, 0x1.ccee08p-71f}};
INVAR_TABLE float kSinFF[][2] = {{0x1p+0f, 0x0p+0f},
                                 {-0x1.555556p-3f, 0x1.555556p-28f},
                                 {0x1.111112p-7f, -0x1.dddddep-32f},
                                 {-0x1.a01a02p-13f, 0x1.7f97fap-39f},
                                 {0x1.71de3ap-19f, 0x1.55b1ccp-45f},
                                 {-0x1.ae6456p-26f, -0x1.fd5138p-52f},
                                 {0x1.612462p-33f, -0x1.8af25ep-58f},
                                 {-0x1.ae7f3ep-41f, -0x1.ccee08p-67f},
                                 {0x1.952c78p-49f, -0x1.f9ea56p-74f},
                                 {-0x1.2f49b4p-57f, -0x1.a05056p-83f}};

// |x| = n pi/2 + r: tan r, or -1 / tan r where n is odd. From 1 on the difference with the first
// part of pi/2 is exact, and so it is below, where n is 0 or 1.
INVAR_INLINE F tan_ff(F x) {
  F a = abs(x), t = fma(a, set1(0x1.45f306p-1f), set1(kRoundFF)), n = sub(t, set1(kRoundFF));
  FF p = ff_two_product(n, set1(0x1.777a5cp-25f)), s = ff_two_sum(fma(n, set1(-0x1.921fb6p+0f), a), p.hi);
  FF r = ff_fast_two_sum(s.hi, fma(n, set1(0x1.ee59dap-50f), add(s.lo, p.lo)));
  FF z = ff_mul(r, r), sin = ff_mul(r, ff_horner<4>(z, kSinFF)), cos = ff_horner<4>(z, kCosFF);
  M odd = lt(flip_by_low_bit(set1(1.0f), t), zero());
  FF over = {select(odd, cos.hi, sin.hi), select(odd, cos.lo, sin.lo)};
  FF under = {select(odd, sin.hi, cos.hi), select(odd, sin.lo, cos.lo)};
  RoundedResult y = round_if_certain(ff_div(over, under), 0x1p-16f);
  M tiny = lt(a, set1(0x1p-12f));  // x + x^3/3 rounds to x
  M sure = either(tiny, both(y.sure, decided_by_ff(a, r)));
  F v = select(tiny, x, flip_with(flip_by_low_bit(y.y, t), x));
  return resolve_uncertain<tan>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
