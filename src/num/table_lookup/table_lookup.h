// Functions by binary32 alone where that decides the result, for lanes that fetch rows of a table from memory (kRows,
// num/lane/lane.h): twice as many lanes per operation as in binary64, which does the rest. Tables: tables.h.
//
// f(c + d) = f + d g (1 + h), where c is the place of a row, f and g = f'(c) stand there as sums of two numbers, f + f_low and
// g + g_low, and h(c, d) is small. s = f + d g rounded; what that rounding loses is exact (f - s is, as |d g| <= f/2 or f = 0),
// and so lo = lost + f_low + d (g_low + g h) makes V = s + lo.
//
// Error of V. Its largest parts are the roundings behind d g h, each at most 2^-24 of it: two for its products, less than
// four of h, whose terms hardly cancel; and the end of h's series, at most 2^-21.5 of h. All else - the second roundings of lost,
// f_low and g_low, and those of the table - is below 2^-46 s. Of all inputs of tanh, erf and erfc the largest is 2^-20.1 of lo or
// of 2^-25 s, whichever is more, and less than that does not matter (settle() in elementary.h): so where s + lo (1 +- 2^-19) give
// one result, that is V rounded. As invar_prove shows on every input (docs/evidence/functions.md).
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

constexpr float kRowDoubt = 0x1p-19f;

INVAR_INLINE Settled settle(Row r, F d, F h) {
  F s = fma(d, r.g, r.f), lost = fma(d, r.g, sub(r.f, s));
  F lo = add(fma(d, fma(r.g, h, r.g_low), r.f_low), lost);
  return settle(s, lo, kRowDoubt);
}

}  // namespace invar::num::INVAR_ISA_NS
