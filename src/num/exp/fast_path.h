// The fast path of exponentials, for lanes whose registers hold a table (kTable, num/lane/lane.h).
// It uses binary32 only, twice as many lanes per operation as binary64. Binary64 computes the
// results that it cannot round with certainty. Constants:
// tools/prove/coefficients/exp_fast_path_coefficients.py.
//
// e^x = 2^m e^(r + low), m a multiple of 1/kTable: 2^m = 2^n T (1 + rest) with T from the table,
// and V = T e^r is T (1 + r + E), E = r^2 P(r). s0 = T (1 + r), s = s0 + T E and what both
// roundings lose; low, below 2^-21.9, comes in by the derivative, s low. So V = s + lo to 2^-36
// (kTable = 32) or 2^-32 (8), half of that below 1, with lo < 2^-21.
//
// s + lo rounds like V unless a midpoint of two numbers is between them. There |lo| is at least
// 2^-24 (2^-25 below 1), so lo (1 +- kErrorOfLo) covers the error: if both have one rounded result,
// that is V rounded. invar_prove shows it on every input.
#pragma once

#include "num/lane/elementary.h"

namespace invar::num::INVAR_ISA_NS {

constexpr float kErrorOfLo = kTable >= 32 ? 0x1p-11f : 0x1p-8f;
constexpr int kTableBits = __builtin_ctz(kTable);
// x + kStep rounds |x| < 2^22 / kTable to a multiple of 1/kTable, which stays in the low bits.
constexpr float kStep = 0x1.8p23f / kTable;

// 2^(i/32) rounded, and the exact 2^(i/32) over it, less 1.
constexpr float kPower[32] = {0x1p+0f,        0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f,
                              0x1.1d4874p+0f, 0x1.2387a6p+0f, 0x1.29e9ep+0f,  0x1.306fep+0f,  0x1.371a74p+0f,
                              0x1.3dea64p+0f, 0x1.44e086p+0f, 0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f,
                              0x1.6247ecp+0f, 0x1.6a09e6p+0f, 0x1.71f75ep+0f, 0x1.7a1148p+0f, 0x1.82589ap+0f,
                              0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f, 0x1.ae89fap+0f,
                              0x1.b7f77p+0f,  0x1.c199bep+0f, 0x1.cb720ep+0f, 0x1.d5818ep+0f, 0x1.dfc974p+0f,
                              0x1.ea4afap+0f, 0x1.f50766p+0f};
constexpr float kRest[32] = {0x0p+0f,          -0x1.947414p-25f, 0x1.8d96d4p-25f,  -0x1.dda2fcp-25f,
                             -0x1.9c0c22p-27f, -0x1.a2fbb2p-25f, 0x1.964904p-25f,  -0x1.2b0dbcp-25f,
                             0x1.125002p-25f,  -0x1.cde8cep-26f, 0x1.370be4p-25f,  0x1.336de2p-30f,
                             -0x1.0a355p-25f,  -0x1.c541b4p-26f, -0x1.00d8acp-27f, -0x1.6cb284p-25f,
                             0x1.26055cp-26f,  0x1.8b2bb8p-26f,  -0x1.05cb44p-25f, -0x1.1c2142p-26f,
                             0x1.67a1cap-28f,  -0x1.348e56p-25f, 0x1.a3b5e4p-28f,  -0x1.0b7ec8p-25f,
                             -0x1.f9c304p-27f, -0x1.e4c886p-26f, -0x1.6961b4p-28f, -0x1.b5151ep-28f,
                             -0x1.a5217cp-28f, -0x1.ab7132p-26f, 0x1.61428ep-28f,  -0x1.2ad5f8p-27f};
struct Exp2Table {
  alignas(128) float entry[kTable];  // a line of a GPU's cache
};
INVAR_INLINE constexpr Exp2Table every_nth(int stride, const float (&from)[32]) {
  Exp2Table t{};
  for (int i = 0; i < kTable; ++i) t.entry[i] = from[i * stride];
  return t;
}
INVAR_TABLE Exp2Table kPowers = every_nth(32 / kTable, kPower), kRests = every_nth(32 / kTable, kRest);

// The part, relatively, that the table's power for t = m + kStep leaves.
INVAR_INLINE F rest_of(F t) {
  return pick(kRests.entry, bits(t));
}
// s + lo, to be multiplied by 2^n: `exponent` is n in the exponent's place.
struct ScaledSum {
  F s, lo;
  I exponent;
};
INVAR_INLINE ScaledSum power_fast(F t, F r, F low) {
  F power = pick(kPowers.entry, bits(t));
  F p = kTable >= 32 ? horner(r, 0.5f, 0x1.5555c8p-3f, 0x1.5555dcp-5f)
                     : horner(r, 0.5f, 0x1.555556p-3f, 0x1.555ceap-5f, 0x1.111678p-7f);
  F e = mul(mul(r, r), p);
  F s0 = fma(power, r, power), lost = fma(power, r, sub(power, s0));
  F s = fma(power, e, s0), lo = add(lost, fma(power, e, sub(s0, s)));
  I n = bit_and(shift_left<23 - kTableBits>(bits(t)), set1_i(static_cast<int32_t>(0xff800000)));
  return {s, fma(s, low, lo), n};
}
// Certain if the test says so; the result must be normal as well.
INVAR_INLINE RoundedResult round_if_certain(ScaledSum v) {
  RoundedResult r = round_if_certain(v.s, v.lo, kErrorOfLo);
  return {from_bits(add(bits(r.y), v.exponent)), r.sure};
}
// The result, which is normal for |x| < limit and 0 below `least`; by `wide` where it is uncertain.
template <F (*wide)(F)>
INVAR_INLINE F round_or_recompute(ScaledSum n, F x, float limit, float least) {
  RoundedResult v = round_if_certain(n);
  M sure = both(v.sure, lt(abs(x), set1(limit)));
  if (__builtin_expect(all(sure), true)) return v.y;
  M zeros = lt(x, set1(least));
  return resolve_uncertain<wide>(x, select(zeros, zero(), v.y), either(sure, zeros));
}

}  // namespace invar::num::INVAR_ISA_NS
