// erf in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides the result, else in
// binary64 (erf.h): the same bits. The same fraction; constants:
// tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/erf/erf.h"
#include "num/ff/ff.h"

namespace invar::num::INVAR_ISA_NS {

INVAR_INLINE F erf_ff(F x) {
  F a = abs(x), d = clamp(a, 0x1p-40f, 3.9375f);
  FF z = ff_two_product(d, d);
  FF p = set1_ff(0x1.c7447ap-37f, 0x1.43845ap-63f);
  FF q = set1_ff(0x1.7fb446p-42f, -0x1.be7dp-68f);
  p = ff_add(set1_ff(0x1.0f04fap-29f, 0x1.508a9p-56f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.d08946p-33f, -0x1.ef651p-60f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.2f10cp-24f, -0x1.178aep-51f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.af5706p-27f, -0x1.2f14fep-52f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.34ce14p-19f, 0x1.32b6c6p-44f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.c5ef8ap-22f, -0x1.718024p-47f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.3ccd58p-15f, -0x1.3c66b8p-41f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.487e06p-17f, 0x1.19f58ep-42f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.66accp-11f, 0x1.b2e384p-37f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.5c40ep-13f, 0x1.25d578p-38f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.74069p-8f, -0x1.49f7bcp-33f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.12bb6cp-9f, 0x1.a52324p-34f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.f88d7ap-5f, 0x1.353e24p-30f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.3dfd92p-6f, -0x1.fb059ep-33f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.a0abd2p-3f, -0x1.f81be4p-29f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.01a188p-3f, 0x1.a34fb6p-28f), ff_mul(q, z));
  p = ff_add(set1_ff(0x1.20dd76p+0f, -0x1.f7ac92p-25f), ff_mul(p, z));
  q = ff_add(set1_ff(0x1.06fba4p-1f, -0x1.95f73p-28f), ff_mul(q, z));
  q = ff_add(set1_ff(1.0f, 0.0f), ff_mul(q, z));
  RoundedResult y =
      round_if_certain(ff_div(ff_mul(ff_fast_two_sum(p.hi, p.lo), d), ff_fast_two_sum(q.hi, q.lo)), 0x1p-16f);
  // 1 above 3.92, zeros themselves; what else is below 2^-40 is left to binary64.
  M large = lt(set1(3.92f), a), none = eq(a, zero());
  M inside = both(y.sure, both(lt(set1(0x1p-40f), a), lt(a, set1(3.93f))));
  M sure = either(inside, either(large, none));
  F v = or_sign(select(none, zero(), select(large, set1(1.0f), y.y)), x);
  return resolve_uncertain<erf_wide>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
