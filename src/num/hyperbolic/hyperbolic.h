// sinh, cosh and tanh of binary32, correctly rounded for every input (spec/functions.md
// functions.7; shown by `invar_prove sinh` and so on, docs/evidence/functions.md), in binary64 with
// one final rounding; tanh uses table rows (num/table_lookup/table_lookup.h) on lanes that have
// them, where they decide.
//
// With x = n ln2 + r, S = sinh r, C = cosh r, g = cosh(n ln2) = (2^n + 2^-n)/2 and h = sinh(n ln2)
// = (2^n - 2^-n)/2: sinh x = g S + h C, cosh x = g C + h S. Where n = 0 sinh x is S alone, and its
// relative error stays small.
#pragma once

#include "num/exp/reduced_sinh_cosh.h"
#include "num/table_lookup/table_lookup.h"
#include "num/table_lookup/tables.h"

namespace invar::num::INVAR_ISA_NS {

struct SinhCosh {
  D sinh, cosh;
};

INVAR_INLINE SinhCosh sinh_cosh(D x) {
  ReducedSinhCosh p = reduced_sinh_cosh(x);
  D half = set1_d(0.5);
  D up = scale_by_low_bits(half, p.t), down = from_bits(sub(bits(half), shift_left<52>(bits(p.t))));
  D g = add(up, down), h = sub(up, down);
  D s = mul(p.r, fma(p.z, p.s, set1_d(1.0))), c = fma(p.z, p.c, set1_d(1.0));
  return {fma(h, c, mul(g, s)), fma(g, c, mul(h, s))};
}

// Beyond the limits the result is infinity (sinh, cosh) or 1 (tanh) anyhow.
INVAR_INLINE F sinh(F x) {
  return or_sign(to_float(sinh_cosh(to_double(clamp(x, -91.0f, 91.0f))).sinh), x);  // sinh(-0) = -0
}
INVAR_INLINE F cosh(F x) {
  return to_float(sinh_cosh(to_double(clamp(x, -91.0f, 91.0f))).cosh);
}
INVAR_INLINE F tanh_wide(F x) {
  SinhCosh v = sinh_cosh(to_double(clamp(x, -10.0f, 10.0f)));
  return or_sign(to_float(div(v.sinh, v.cosh)), x);
}

// h of table_lookup.h, |d| <= 9/1024: with v = f d, w = d^2 and k = tanh(d), tanh(c + d) = (f + k)
// / (1 + f k), so 1 + h = k/d / (1 + f k) = 1 - v + v^2 - v^3 - w/3 + 2/3 v w + 2/15 w^2 + ...;
// what is left out is below 2^-21 of h.
template <bool stored>
INVAR_INLINE F tanh_as(F x) {
  if constexpr (!kHasTableRows) return stored ? canonicalize(tanh_wide(x)) : tanh_wide(x);
  F a = abs(x), round = set1(0x1.8p23f), t = fma(a, set1(512 / 9.0f), round), one = set1(1.0f);
  F d = fma(sub(t, round), set1(-9 / 512.0f), a);  // exact
  TableRow r = load_table_row(kTanhRows.row, bit_and(bits(t), set1_i(511)));
  F v = mul(r.f, d), w = mul(d, d), p = fma(v, sub(one, v), set1(-1.0f));
  F q = fma(w, set1(0x1.111112p-3f), fma(v, set1(0x1.555556p-1f), set1(-0x1.555556p-2f)));
  RoundedResult s = round_if_certain(r, d, fma(v, p, mul(w, q)));
  F y = or_sign(s.y, x);
  M sure = both(s.sure, inside(x, 0x1p-100f, 8.99f));
  if (__builtin_expect(all(sure), true)) return y;
  M tiny = lt(a, set1(0x1p-13f)), large = lt(set1(9.02f), a);  // x - x^3/3 rounds to x; 1
  y = select(large, or_sign(one, x), select(tiny, x, y));
  y = resolve_uncertain<tanh_wide>(x, y, either(sure, either(tiny, large)));
  return stored ? canonicalize(y) : y;
}

INVAR_INLINE F tanh(F x) {
  return tanh_as<false>(x);
}

}  // namespace invar::num::INVAR_ISA_NS
