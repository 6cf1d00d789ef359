// asin, acos and atan in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the
// result, else in binary64 (inverse_trig.h): the same bits. The polynomials of inverse_trig.h.
// Constants: tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/ff/series.h"
#include "num/inverse_trig/inverse_trig.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_TABLE float kAsinFF[][2] = {{0x1.555556p-3f, -0x1.555552p-28f}, {0x1.333334p-4f, -0x1.99a3c6p-29f},
                                  {0x1.6db6dcp-5f, -0x1.1bf308p-30f}, {0x1.f1c71ap-6f, 0x1.34c258p-31f},
                                  {0x1.6e8bdep-6f, 0x1.abf2p-33f},    {0x1.1c49fep-6f, -0x1.9ed3dap-31f},
                                  {0x1.ca1e4cp-7f, -0x1.0cd074p-34f}, {0x1.75902p-7f, 0x1.c7eafap-32f},
                                  {0x1.60fff6p-7f, 0x1.8de93ep-32f},  {0x1.e995aap-9f, 0x1.fa8a0cp-35f},
                                  {0x1.627f8ep-6f, 0x1.17f3c2p-32f},  {-0x1.5667f6p-6f, 0x1.6c5934p-33f},
                                  {0x1.0ac784p-5f, -0x1.58f544p-32f}};
INVAR_TABLE float kAtanFF[][2] = {{-0x1.555556p-2f, 0x1.555558p-27f}, {0x1.99999ap-3f, -0x1.99aadap-29f},
                                  {-0x1.24924ap-3f, 0x1.bad0dap-28f}, {0x1.c71c7p-4f, 0x1.bc398ap-29f},
                                  {-0x1.745cf8p-4f, -0x1.88164p-35f}, {0x1.3b110ap-4f, 0x1.26c2e8p-29f},
                                  {-0x1.10eb18p-4f, 0x1.215d48p-34f}, {0x1.df0666p-5f, 0x1.9bd4c4p-30f},
                                  {-0x1.9cab78p-5f, 0x1.942562p-30f}, {0x1.377382p-5f, 0x1.4bfe8ep-31f},
                                  {-0x1.249664p-6f, 0x1.e51a0cp-32f}};

// asin(s), s as in inverse_trig.h.
struct HalfArcFF {
  FF arc;
  M big;
};
INVAR_INLINE HalfArcFF half_arc_ff(F a) {
  M big = lt(set1(0.5f), a);
  F h = fma(a, set1(-0.5f), set1(0.5f));  // exact where a > 1/2
  FF root = ff_sqrt({h, zero()}), square = ff_two_product(a, a);
  FF s = {select(big, root.hi, a), select(big, root.lo, zero())};
  FF z = {select(big, h, square.hi), select(big, zero(), square.lo)};
  return {ff_add_smaller(s, ff_mul(ff_mul(s, z), ff_horner<5>(z, kAsinFF))), big};
}

INVAR_INLINE F asin_ff(F x) {
  F a = abs(x), two = set1(-2.0f);
  HalfArcFF h = half_arc_ff(a);
  FF s = ff_two_sum(set1(0x1.921fb6p+0f), mul(two, h.arc.hi));
  F low = add(s.lo, fma(two, h.arc.lo, set1(-0x1.777a5cp-25f)));
  RoundedResult y = round_if_certain({select(h.big, s.hi, h.arc.hi), select(h.big, low, h.arc.lo)}, 0x1p-16f);
  M tiny = lt(a, set1(0x1p-12f));  // x + x^3/6 rounds to x
  M sure = either(tiny, both(y.sure, lt(a, set1(1.0f))));
  F v = select(tiny, x, flip_with(y.y, x));
  return resolve_uncertain<asin>(x, v, sure);
}

// k pi/2 + c asin(s): k = 1, c = -1 up to |x| = 1/2; beyond it k = 0 or 2, c = 2; both for positive
// x, else c = -c.
INVAR_INLINE F acos_ff(F x) {
  F a = abs(x);
  HalfArcFF h = half_arc_ff(a);
  F c = flip_with(select(h.big, set1(2.0f), set1(-1.0f)), x);
  F k = select(h.big, select(lt(x, zero()), set1(2.0f), zero()), set1(1.0f));
  FF s = ff_two_sum(mul(k, set1(0x1.921fb6p+0f)), mul(c, h.arc.hi));
  RoundedResult y =
      round_if_certain({s.hi, add(s.lo, fma(c, h.arc.lo, mul(k, set1(-0x1.777a5cp-25f))))}, 0x1p-16f);
  M sure = both(y.sure, lt(a, set1(1.0f)));
  return resolve_uncertain<acos>(x, y.y, sure);
}

// k pi/4 + atan(t) as in inverse_trig.h.
INVAR_INLINE F atan_ff(F x) {
  F a = abs(x), b = clamp(a, 0.0f, 0x1p30f), one = set1(1.0f);
  M beyond = lt(set1(0x1.3504f4p+1f), a), low = lt(a, set1(0x1.a8279ap-2f));
  FF less = ff_two_sum(b, neg(one)), more = ff_two_sum(b, one);
  FF over = {select(low, b, select(beyond, neg(one), less.hi)), select(either(low, beyond), zero(), less.lo)};
  FF under = {select(low, one, select(beyond, b, more.hi)), select(either(low, beyond), zero(), more.lo)};
  FF t = ff_div(over, under), z = ff_mul(t, t);
  FF g = ff_add_smaller(t, ff_mul(ff_mul(t, z), ff_horner<4>(z, kAtanFF)));
  F k = select(low, zero(), select(beyond, set1(2.0f), one));
  FF s = ff_two_sum(mul(k, set1(0x1.921fb6p-1f)), g.hi);
  RoundedResult y = round_if_certain({s.hi, add(s.lo, fma(k, set1(-0x1.777a5cp-26f), g.lo))}, 0x1p-16f);
  M tiny = lt(a, set1(0x1p-12f));  // x - x^3/3 rounds to x
  M sure = either(tiny, y.sure);
  F v = select(tiny, x, flip_with(y.y, x));
  return resolve_uncertain<atan>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
