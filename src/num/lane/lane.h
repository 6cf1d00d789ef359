// The virtual float vector over which every kernel is written once: F, kW lanes of binary32, and D,
// the same lanes in binary64. cmake/room.cmake compiles a kernel once per instruction set and
// defines INVAR_ISA_NS and INVAR_ISA_<ISA>; without them (reference code, tests) this is the scalar
// lane under the name `portable`. All functions are inlined and internal (num/inline.h), so no copy
// compiled for one instruction set can be called from code for another. For the same reason kernel
// files may include no header with inline functions of external linkage.
//
// Each operation is one IEEE 754 operation, rounded to nearest even, per lane (spec/formats.md
// formats.3): every lane file yields the same bits. NaN payloads may differ until canonicalize() or
// a narrowing, which every tensor store applies.
#pragma once

#include "num/inline.h"

#ifndef INVAR_ISA_NS
#define INVAR_ISA_NS portable
#endif

#if defined(INVAR_ISA_AVX512)
#include "num/lane/lane_avx512.h"
#elif defined(INVAR_ISA_AVX2)
#include "num/lane/lane_avx2.h"
#elif defined(INVAR_ISA_NEON)
#include "num/lane/lane_neon.h"
#elif defined(INVAR_ISA_WASM)
#include "num/lane/lane_wasm.h"
#else
#include "num/lane/lane_scalar.h"
#endif

namespace invar::num::INVAR_ISA_NS {

// spec/formats.md formats.5, the store rule: any NaN -> 0x7fc00000, a subnormal -> the zero of its
// sign; one_nan() is its first half.
#if !defined(INVAR_ISA_AVX512)  // which has them in fewer instructions
INVAR_INLINE F one_nan(F x) {
  return select(unordered(x, x), from_bits(set1_i(0x7fc00000)), x);
}
INVAR_INLINE F canonicalize(F x) {
  I u = bits(x), mag = bit_and(u, set1_i(0x7fffffff));
  I flushed = select(gt(mag, set1_i(0x007fffff)), u, bit_and(u, set1_i(INT32_MIN)));
  return from_bits(select(gt(mag, set1_i(0x7f800000)), set1_i(0x7fc00000), flushed));
}
#endif
// Lanes that the store rule leaves unchanged.
struct Canonical {
  F v;
};
INVAR_INLINE F canonicalize(Canonical x) {
  return x.v;
}
// n <= kW elements at p.
INVAR_INLINE F load_part(const float* p, int n) {
  return n == kW ? load(p) : load_n(p, n);
}
INVAR_INLINE void store_part(float* p, F x, int n) {
  if (n == kW)
    store(p, x);
  else
    store_n(p, x, n);
}

// canonicalize() and store.
INVAR_INLINE void store_canonical(float* p, F x) {
  store(p, canonicalize(x));
}
INVAR_INLINE void store_canonical_n(float* p, F x, int n) {
  store_n(p, canonicalize(x), n);
}

INVAR_INLINE F neg(F x) {
  return from_bits(bit_xor(bits(x), set1_i(INT32_MIN)));
}
INVAR_INLINE F abs(F x) {
  return from_bits(bit_and(bits(x), set1_i(0x7fffffff)));
}

// maximum and minimum of IEEE 754-2019 (spec/formats.md formats.7): NaN wins, -0 < +0. A maximum is
// negative exactly if both numbers are, so its sign bit is the AND of theirs; that of a minimum is
// the OR.
INVAR_INLINE F maximum(F a, F b) {
  I sign = bit_or(bit_and(bits(a), bits(b)), set1_i(INT32_MAX));
  F most = from_bits(bit_and(bits(larger(a, b)), sign));
  return select(unordered(a, b), from_bits(set1_i(0x7fc00000)), most);
}
INVAR_INLINE F minimum(F a, F b) {
  I sign = bit_and(bit_or(bits(a), bits(b)), set1_i(INT32_MIN));
  F least = from_bits(bit_or(bits(smaller(a, b)), sign));
  return select(unordered(a, b), from_bits(set1_i(0x7fc00000)), least);
}

// Widening loads: exact (spec/formats.md formats.2).
INVAR_INLINE F load_bf16(const uint16_t* p) {
  return from_bits(shift_left<16>(widen_u16(load_h(p))));
}
INVAR_INLINE F load_bf16_n(const uint16_t* p, int n) {
  return from_bits(shift_left<16>(widen_u16(load_h_n(p, n))));
}
INVAR_INLINE F load_f16(const uint16_t* p) {
  return widen_f16(load_h(p));
}
INVAR_INLINE F load_f16_n(const uint16_t* p, int n) {
  return widen_f16(load_h_n(p, n));
}

// Narrowing: the store rule, then round to nearest even (spec/formats.md formats.6). After
// canonicalize(), adding half of the last kept place, less one unless that place is odd, carries
// correctly into the exponent, up to infinity; the canonical NaN 0x7fc00000 becomes 0x7fc0.
INVAR_INLINE H to_bf16(F x) {
  I u = bits(canonicalize(x));
  I odd = bit_and(shift_right<16>(u), set1_i(1));
  return narrow_u16(shift_right<16>(add(add(u, set1_i(0x7fff)), odd)));
}
// A subnormal rounds to the zero of its sign anyway: only NaN needs the store rule.
INVAR_INLINE H to_f16(F x) {
  return narrow_f16(select(unordered(x, x), from_bits(set1_i(0x7fc00000)), x));
}
INVAR_INLINE void store_bf16(uint16_t* p, F x) {
  store_h(p, to_bf16(x));
}
INVAR_INLINE void store_bf16_n(uint16_t* p, F x, int n) {
  store_h_n(p, to_bf16(x), n);
}
INVAR_INLINE void store_f16(uint16_t* p, F x) {
  store_h(p, to_f16(x));
}
INVAR_INLINE void store_f16_n(uint16_t* p, F x, int n) {
  store_h_n(p, to_f16(x), n);
}

}  // namespace invar::num::INVAR_ISA_NS
