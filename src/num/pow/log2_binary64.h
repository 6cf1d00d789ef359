// log2 of any positive binary64 number, with a relative error below 2^-90. log2_of (certified.h) is
// for binary32: its divisor m + 1 is exact for 52 bits alone.
#pragma once

#include "num/pow/certified.h"

namespace invar::num {

// x = f (1 + e), f the nearest binary32: log2 x = log2 f + 2 atanh(t) log2(e), t = e / (2 + e). The
// terms from t^7 on are below 2^-150 of the first. f is 1 or |log2 f| > 2^-24, and |e| <= 2^-24:
// the sum loses at most two bits. x is within the range of normal binary32 numbers.
INVAR_INTERNAL DD log2_of_binary64(double x) {
  const double f = static_cast<double>(static_cast<float>(x));
  const DD e = quotient(x - f, f), t = dd_div(e, dd_add(DD{2, 0}, e)), z = dd_mul(t, t);
  const DD series = dd_add(DD{1, 0}, dd_mul(z, dd_add(quotient(1, 3), dd_mul(z, quotient(1, 5)))));
  const DD log2_e = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
  return dd_add(log2_of(f), dd_mul(dd_mul(dd_mul(t, series), DD{2, 0}), log2_e));
}

}  // namespace invar::num
