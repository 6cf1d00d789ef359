// Maxima and minima of rows (spec/reduction.md reduction.8), order-free. A step is one instruction
// for each of three facts that are kept apart until the end: an extreme of the numbers, its sign
// (lane.h maximum), and whether a NaN occurred. Two elements share a test for NaN.
#pragma once

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

template <bool kMost>
struct Extreme {
  static constexpr bool kExtreme = true;
  static constexpr float kStart = kMost ? -__builtin_inff() : __builtin_inff();
  INVAR_INLINE F join(F a, F b) { return kMost ? maximum(a, b) : minimum(a, b); }
  INVAR_INLINE float join(float a, float b) { return first(join(set1(a), set1(b))); }
  INVAR_INLINE F number(F a, F b) { return kMost ? larger(a, b) : smaller(a, b); }
  INVAR_INLINE float number(float a, float b) { return (kMost ? a > b : a < b) ? a : b; }

  F value;
  I sign;
  M nan;
  INVAR_INLINE Extreme of(F a) { return {a, bits(a), unordered(a, a)}; }
  // kNumbers: NaN may be ignored, and a zero may have either sign.
  template <bool kNumbers = false>
  INVAR_INLINE void take(Extreme& e, F a, F b) {
    e.value = number(e.value, number(a, b));
    if (kNumbers) return;
    e.sign = of_signs(e.sign, of_signs(bits(a), bits(b)));
    e.nan = either(e.nan, unordered(a, b));
  }
  INVAR_INLINE void take(Extreme& e, const Extreme& o) {
    e = {number(e.value, o.value), of_signs(e.sign, o.sign), either(e.nan, o.nan)};
  }
  INVAR_INLINE F lanes_of(const Extreme& e) {
    I v = bits(e.value);
    v = kMost ? bit_and(v, bit_or(e.sign, set1_i(INT32_MAX))) : bit_or(v, bit_and(e.sign, set1_i(INT32_MIN)));
    return select(e.nan, from_bits(set1_i(0x7fc00000)), from_bits(v));
  }
  INVAR_INLINE I of_signs(I a, I b) { return kMost ? bit_and(a, b) : bit_or(a, b); }
  // The extreme of all lanes.
  template <bool kNumbers = false>
  INVAR_INLINE float within(const Extreme& e) {
    if (!kNumbers && any(e.nan)) return __builtin_bit_cast(float, 0x7fc00000);
    alignas(64) float lane[kW];
    store(lane, e.value);
    for (int stride = kW / 2; stride >= 1; stride /= 2)
      for (int j = 0; j < stride; ++j) lane[j] = number(lane[j], lane[j + stride]);
    if (kNumbers) return lane[0];
    M negative = gt(set1_i(0), e.sign);
    float magnitude = __builtin_fabsf(lane[0]);
    return (kMost ? all(negative) : any(negative)) ? -magnitude : magnitude;
  }
  INVAR_INLINE float lanes(F a) { return within(of(a)); }
};
using Largest = Extreme<true>;
using Smallest = Extreme<false>;

// The extreme of a row of n >= 0 elements and the identity. As order is free, the last vector may
// overlap the one before.
template <class E, bool kNumbers = false>
INVAR_INLINE float row_extreme(const float* x, int64_t n) {
  constexpr int kChains = 4;  // hides the latency of a comparison
  alignas(64) float few[kW];
  if (n < kW) {
    for (int j = 0; j < kW; ++j) few[j] = j < n ? x[j] : E::kStart;
    x = few, n = kW;
  }
  E part[kChains];
  for (E& e : part) e = E::of(set1(E::kStart));
  int64_t i = 0;
  for (; i + 2 * kChains * kW <= n; i += 2 * kChains * kW)
    for (int c = 0; c < kChains; ++c)
      E::template take<kNumbers>(part[c], load(x + i + 2 * c * kW), load(x + i + (2 * c + 1) * kW));
  for (; i + 2 * kW <= n; i += 2 * kW) E::template take<kNumbers>(part[0], load(x + i), load(x + i + kW));
  if (i < n) E::template take<kNumbers>(part[1], load(x + (i + kW <= n ? i : n - kW)), load(x + n - kW));
  for (int c = 1; c < kChains; ++c) E::take(part[0], part[c]);
  return E::template within<kNumbers>(part[0]);
}

}  // namespace invar::num::INVAR_ISA_NS
