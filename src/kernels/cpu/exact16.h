// The steps of exact16 for a row and for a result, on lanes (spec/exact16.md). Compiled once per
// instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/contract/schedule.h"
#include "num/exact16/quantize.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Rows are held as pairs of int16 along k.
INVAR_INLINE int64_t exact_pairs(int64_t k) {
  return (k + 1) / 2;
}

INVAR_INLINE I magnitude_bits(F x) {
  return bit_and(bits(x), set1_i(0x7fffffff));
}
// The largest magnitude_bits() of k elements that lie side by side.
template <class W>
INVAR_INLINE uint32_t largest_of_row(W, const typename W::T* x, int64_t k) {
  I most = set1_i(0);
  for (int64_t i = 0; i < k; i += kW) {
    const I u = magnitude_bits(get_part<W>(x + i, static_cast<int>(num::min_i64(kW, k - i))));
    most = select(gt(u, most), u, most);
  }
  alignas(64) int32_t lanes[kW];
  store_i(lanes, most);
  int32_t largest = 0;
  for (const int32_t u : lanes) largest = u > largest ? u : largest;
  return static_cast<uint32_t>(largest);
}
INVAR_INLINE I exact_integers(F x, F first, F second) {  // exact16.2
  return truncate(round_even(mul(mul(x, first), second)));
}

// exact16.4 and exact16.5. power: 2^(ea + eb), or NaN.
INVAR_INLINE F exact_result(D sum, D power) {
  const D y = mul(to_double(to_float(sum)), power);
  const L magnitude = bit_and(bits(y), set1_l(INT64_MAX));
  const MD small = lt(from_bits(magnitude), set1_d(0x1p-126));
  return canonicalize(to_float(select(small, from_bits(bit_and(bits(y), set1_l(INT64_MIN))), y)));
}
INVAR_INLINE double exact_power(int32_t e) {
  return e == num::kExact16NoIntegers ? __builtin_nan("") : num::exact16_wide_power(e);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
