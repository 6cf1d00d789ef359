// log, log2, log10 and log1p in float-float binary32 arithmetic (num/ff/ff.h) wherever that decides
// the result, else in binary64 (log.h and so on): the same bits. Constants:
// tools/prove/coefficients/ff_coefficients.py.
#pragma once

#include "num/ff/ff.h"
#include "num/log/log.h"
#include "num/log/log10.h"
#include "num/log/log1p.h"
#include "num/log/log2.h"

namespace invar::num::INVAR_ISA_NS {

// A normal x > 0 as 2^e m, m between sqrt(1/2) and sqrt(2); field = e + 127.
struct SplitFF {
  F e, m;
  I field;
};
INVAR_INLINE SplitFF split_ff(F x) {
  I field = shift_right<23>(add(bits(x), set1_i(0x3f800000 - 0x3f3504f3)));
  F e = sub(from_bits(bit_or(field, set1_i(0x4b000000))), set1(0x1p23f + 127));
  return {e, from_bits(add(sub(bits(x), shift_left<23>(field)), set1_i(0x3f800000))), field};
}
// 2 atanh(s) for |s| < 0.1716: the series; its terms from s^9 on matter only to 2^-24 and are
// summed in binary32.
INVAR_INLINE FF twice_atanh_ff(FF s) {
  FF z = ff_mul(s, s);
  F f = horner(z.hi, 0x1.c71c72p-3f, 0x1.745d18p-3f, 0x1.3b13b2p-3f, 0x1.111112p-3f, 0x1.e1e1e2p-4f);
  FF q = ff_add_smaller(set1_ff(0x1.24924ap-2f, -0x1.b6db6ep-27f), {mul(f, z.hi), zero()});
  q = ff_add_smaller(set1_ff(0x1.99999ap-2f, -0x1.99999ap-28f), ff_mul(q, z));
  q = ff_add_smaller(set1_ff(0x1.555556p-1f, -0x1.555556p-26f), ff_mul(q, z));
  return ff_add_smaller({add(s.hi, s.hi), add(s.lo, s.lo)}, ff_mul(ff_mul(s, z), q));
}
// e and log(m) of a positive number.
struct LogFF {
  F e;
  FF l;
};
INVAR_INLINE LogFF log_parts_ff(F x) {
  M small = lt(x, set1(0x1p-126f));
  SplitFF p = split_ff(select(small, mul(x, set1(0x1p32f)), x));
  FF s = ff_div({sub(p.m, set1(1.0f)), zero()}, ff_two_sum(p.m, set1(1.0f)));
  return {sub(p.e, select(small, set1(32.0f), zero())), twice_atanh_ff(s)};
}
// e c + l, c = hi + lo.
INVAR_INLINE FF ff_sum_of_log(F e, float hi, float lo, FF l) {
  FF p = ff_two_product(e, set1(hi)), s = ff_two_sum(p.hi, l.hi);
  return {s.hi, add(s.lo, fma(e, set1(lo), add(p.lo, l.lo)))};
}
INVAR_INLINE M positive(F x) {
  return both(lt(zero(), x), lt(x, set1(__builtin_inff())));
}

INVAR_INLINE F log_ff(F x) {
  LogFF v = log_parts_ff(x);
  RoundedResult y = round_if_certain(ff_sum_of_log(v.e, 0x1.62e43p-1f, -0x1.05c61p-29f, v.l), 0x1p-16f);
  M sure = both(y.sure, positive(x));
  return resolve_uncertain<log>(x, y.y, sure);
}
INVAR_INLINE F log2_ff(F x) {
  LogFF v = log_parts_ff(x);
  FF l = ff_mul(v.l, set1_ff(0x1.715476p+0f, 0x1.4ae0cp-26f));
  RoundedResult y = round_if_certain(ff_sum_of_log(v.e, 1.0f, 0.0f, l), 0x1p-16f);
  M sure = both(y.sure, positive(x));
  return resolve_uncertain<log2>(x, y.y, sure);
}
INVAR_INLINE F log10_ff(F x) {
  LogFF v = log_parts_ff(x);
  FF l = ff_mul(v.l, set1_ff(0x1.bcb7b2p-2f, -0x1.5b235ep-27f));
  RoundedResult y = round_if_certain(ff_sum_of_log(v.e, 0x1.344136p-2f, -0x1.ec10cp-27f, l), 0x1p-16f);
  M sure = both(y.sure, positive(x));
  return resolve_uncertain<log10>(x, y.y, sure);
}

// 1 + x in two parts; where e = 0 what is left of them after 1 is x again, exactly. x itself below
// 2^-25.
INVAR_INLINE F log1p_ff(F x) {
  FF u = ff_two_sum(set1(1.0f), x);
  SplitFF p = split_ff(u.hi);
  F back = from_bits(shift_left<23>(sub(set1_i(254), p.field)));  // 2^-e
  FF r = ff_two_sum(sub(p.m, set1(1.0f)), mul(u.lo, back)), d = ff_two_sum(set1(2.0f), r.hi);
  FF l = twice_atanh_ff(ff_div(r, {d.hi, add(d.lo, r.lo)}));
  RoundedResult y = round_if_certain(ff_sum_of_log(p.e, 0x1.62e43p-1f, -0x1.05c61p-29f, l), 0x1p-16f);
  M tiny = lt(abs(x), set1(0x1p-25f)), inside = both(lt(set1(-1.0f), x), lt(x, set1(0x1p126f)));
  M sure = either(tiny, both(y.sure, inside));
  F v = select(tiny, x, y.y);
  return resolve_uncertain<log1p>(x, v, sure);
}

}  // namespace invar::num::INVAR_ISA_NS
