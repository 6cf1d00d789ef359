// Functions in binary32 only, where that decides the result, for lanes that load rows of a table
// from memory (kHasTableRows, num/lane/lane.h): twice as many lanes per operation as in binary64,
// which computes the rest. Tables: tables.h.
//
// f(c + d) = f + d g (1 + h), where c is the abscissa of a row, the row holds f and g = f'(c) as
// sums of two numbers, f + f_low and g + g_low, and h(c, d) is small. s = f + d g rounded; its
// rounding error is exact (f - s is, as |d g| <= f/2 or f = 0), and so lo = lost + f_low + d (g_low
// + g h) makes V = s + lo.
//
// Error of V. The largest parts are the roundings after d g h, each at most 2^-24 of it: two for
// its products, less than four for h, whose terms hardly cancel; and the truncation of h's series,
// at most 2^-21.5 of h. All else - the second roundings of lost, f_low and g_low, and those of the
// table - is below 2^-46 s. Over all inputs of tanh, erf and erfc the largest error is 2^-20.1 of
// lo or of 2^-25 s, whichever is more, and smaller errors do not matter (round_if_certain() in
// elementary.h). So where s + lo (1 +- 2^-19) have one rounded result, that is V rounded.
// invar_prove shows it on every input (docs/evidence/functions.md).
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

constexpr float kRowDoubt = 0x1p-19f;

INVAR_INLINE RoundedResult round_if_certain(TableRow r, F d, F h) {
  F s = fma(d, r.g, r.f), lost = fma(d, r.g, sub(r.f, s));
  F lo = add(fma(d, fma(r.g, h, r.g_low), r.f_low), lost);
  return round_if_certain(s, lo, kRowDoubt);
}

}  // namespace invar::num::INVAR_ISA_NS
