// Four lanes: the 128-bit vectors of WebAssembly, without its relaxed instructions, whose results
// differ between machines. There is no fused multiply-add: binary32 products are exact in binary64,
// and the rare sum whose second rounding could differ is computed again (num/soft_fma).
#pragma once

#include <wasm_simd128.h>

#include <cstdint>

#include "num/convert/convert.h"
#include "num/soft_fma/soft_fma.h"

// One operation, one line.
// clang-format off
namespace invar::num::INVAR_ISA_NS {

constexpr int kW = 4;
struct F { v128_t v; };
struct D { v128_t lo, hi; };
struct I { v128_t v; };
struct L { v128_t lo, hi; };
struct MD { v128_t lo, hi; };
struct H { v128_t v; };  // in the low half
struct M { v128_t v; };

INVAR_INLINE F zero() { return {wasm_f32x4_const_splat(0)}; }
INVAR_INLINE F set1(float x) { return {wasm_f32x4_splat(x)}; }
INVAR_INLINE F load(const float* p) { return {wasm_v128_load(p)}; }
INVAR_INLINE void store(float* p, F a) { wasm_v128_store(p, a.v); }
INVAR_INLINE F load_n(const float* p, int n) {
  float t[4] = {};
  for (int i = 0; i < n && i < 4; ++i) t[i] = p[i];
  return load(t);
}
INVAR_INLINE void store_n(float* p, F a, int n) {
  float t[4];
  store(t, a);
  for (int i = 0; i < n && i < 4; ++i) p[i] = t[i];
}

INVAR_INLINE F add(F a, F b) { return {wasm_f32x4_add(a.v, b.v)}; }
INVAR_INLINE F sub(F a, F b) { return {wasm_f32x4_sub(a.v, b.v)}; }
INVAR_INLINE F mul(F a, F b) { return {wasm_f32x4_mul(a.v, b.v)}; }
INVAR_INLINE F div(F a, F b) { return {wasm_f32x4_div(a.v, b.v)}; }
INVAR_INLINE F sqrt(F a) { return {wasm_f32x4_sqrt(a.v)}; }

// The lanes of two vectors: the low and the high two as binary64.
INVAR_INLINE v128_t high_half(v128_t a) { return wasm_i64x2_shuffle(a, a, 1, 1); }
INVAR_INLINE v128_t join(v128_t lo, v128_t hi) { return wasm_i64x2_shuffle(lo, hi, 0, 2); }
INVAR_INLINE D to_double(F a) {
  return {wasm_f64x2_promote_low_f32x4(a.v), wasm_f64x2_promote_low_f32x4(high_half(a.v))};
}
INVAR_INLINE F to_float(D a) {
  return {join(wasm_f32x4_demote_f64x2_zero(a.lo), wasm_f32x4_demote_f64x2_zero(a.hi))};
}
INVAR_INTERNAL v128_t fma_by_lanes(v128_t a, v128_t b, v128_t c) {
  float x[4], y[4], z[4];
  wasm_v128_store(x, a), wasm_v128_store(y, b), wasm_v128_store(z, c);
  for (int i = 0; i < 4; ++i) z[i] = soft::fma(x[i], y[i], z[i]);
  return wasm_v128_load(z);
}
INVAR_INLINE F fma(F a, F b, F c) {
  D x = to_double(a), y = to_double(b), z = to_double(c);
  D s = {wasm_f64x2_add(wasm_f64x2_mul(x.lo, y.lo), z.lo), wasm_f64x2_add(wasm_f64x2_mul(x.hi, y.hi), z.hi)};
  // soft::rounds_twice(): a tie, or 0 < |s| < 2^-126. No sum is below 2^-298, so the upper words say that.
  v128_t low = wasm_i32x4_shuffle(s.lo, s.hi, 0, 2, 4, 6), high = wasm_i32x4_shuffle(s.lo, s.hi, 1, 3, 5, 7);
  v128_t tie = wasm_i32x4_eq(wasm_v128_and(low, wasm_i32x4_const_splat(0x1fffffff)), wasm_i32x4_const_splat(0x10000000));
  v128_t size = wasm_i32x4_sub(wasm_i32x4_shl(high, 1), wasm_i32x4_const_splat(1));
  v128_t small = wasm_u32x4_lt(size, wasm_i32x4_const_splat(0x7020'0000 - 1));
  if (__builtin_expect(wasm_v128_any_true(wasm_v128_or(tie, small)), 0)) return {fma_by_lanes(a.v, b.v, c.v)};
  return to_float(s);
}
INVAR_INLINE F floor(F a) { return {wasm_f32x4_floor(a.v)}; }
INVAR_INLINE F trunc(F a) { return {wasm_f32x4_trunc(a.v)}; }
INVAR_INLINE F round_even(F a) { return {wasm_f32x4_nearest(a.v)}; }
// The larger and the smaller of two numbers; of equal ones, and if a is NaN, either; NaN if b is.
INVAR_INLINE F larger(F a, F b) { return {wasm_f32x4_pmax(b.v, a.v)}; }
INVAR_INLINE F smaller(F a, F b) { return {wasm_f32x4_pmin(b.v, a.v)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE F clamp(F a, float lo, float hi) {
  return {wasm_f32x4_pmin(wasm_f32x4_pmax(a.v, wasm_f32x4_splat(lo)), wasm_f32x4_splat(hi))};
}

INVAR_INLINE M lt(F a, F b) { return {wasm_f32x4_lt(a.v, b.v)}; }
INVAR_INLINE M eq(F a, F b) { return {wasm_f32x4_eq(a.v, b.v)}; }
INVAR_INLINE M unordered(F a, F b) { return {wasm_v128_or(wasm_f32x4_ne(a.v, a.v), wasm_f32x4_ne(b.v, b.v))}; }
INVAR_INLINE M both(M a, M b) { return {wasm_v128_and(a.v, b.v)}; }
INVAR_INLINE M either(M a, M b) { return {wasm_v128_or(a.v, b.v)}; }
INVAR_INLINE bool any(M a) { return wasm_v128_any_true(a.v); }
INVAR_INLINE bool all(M a) { return wasm_i32x4_all_true(a.v); }
INVAR_INLINE F select(M m, F yes, F no) { return {wasm_v128_bitselect(yes.v, no.v, m.v)}; }

INVAR_INLINE I bits(F a) { return {a.v}; }
INVAR_INLINE F from_bits(I a) { return {a.v}; }
INVAR_INLINE I set1_i(int32_t x) { return {wasm_i32x4_splat(x)}; }
INVAR_INLINE I bit_and(I a, I b) { return {wasm_v128_and(a.v, b.v)}; }
INVAR_INLINE I bit_or(I a, I b) { return {wasm_v128_or(a.v, b.v)}; }
INVAR_INLINE I bit_xor(I a, I b) { return {wasm_v128_xor(a.v, b.v)}; }
INVAR_INLINE I add(I a, I b) { return {wasm_i32x4_add(a.v, b.v)}; }
INVAR_INLINE I sub(I a, I b) { return {wasm_i32x4_sub(a.v, b.v)}; }
// Per lane, of its two 16-bit integers: low * low + high * high.
INVAR_INLINE I pair_products(I a, I b) { return {wasm_i32x4_dot_i16x8(a.v, b.v)}; }
template <int k>
INVAR_INLINE I shift_left(I a) {
  return {wasm_i32x4_shl(a.v, k)};
}
template <int k>
INVAR_INLINE I shift_right(I a) {
  return {wasm_u32x4_shr(a.v, k)};
}
INVAR_INLINE M gt(I a, I b) { return {wasm_i32x4_gt(a.v, b.v)}; }
INVAR_INLINE I select(M m, I yes, I no) { return {wasm_v128_bitselect(yes.v, no.v, m.v)}; }

INVAR_INLINE H load_h(const uint16_t* p) { return {wasm_v128_load64_zero(p)}; }
INVAR_INLINE void store_h(uint16_t* p, H a) { wasm_v128_store64_lane(p, a.v, 0); }
INVAR_INLINE H load_h_n(const uint16_t* p, int n) {
  uint16_t t[4] = {};
  for (int i = 0; i < n && i < 4; ++i) t[i] = p[i];
  return load_h(t);
}
INVAR_INLINE void store_h_n(uint16_t* p, H a, int n) {
  uint16_t t[4];
  store_h(t, a);
  for (int i = 0; i < n && i < 4; ++i) p[i] = t[i];
}
INVAR_INLINE I widen_u16(H a) { return {wasm_u32x4_extend_low_u16x8(a.v)}; }
// The low halves of the lanes.
INVAR_INLINE H narrow_u16(I a) { return {wasm_i16x8_shuffle(a.v, a.v, 0, 2, 4, 6, 0, 2, 4, 6)}; }
// Bytes, to and from 32-bit integers 0 ... 255, and integers to floats, rounded to nearest even.
INVAR_INLINE I load_u8(const uint8_t* p) {
  return {wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p)))};
}
INVAR_INLINE I load_u8_n(const uint8_t* p, int n) {
  uint8_t t[4] = {};
  for (int i = 0; i < n && i < 4; ++i) t[i] = p[i];
  return load_u8(t);
}
INVAR_INLINE void store_u8(uint8_t* p, I a) {
  wasm_v128_store32_lane(p, wasm_i8x16_shuffle(a.v, a.v, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), 0);
}
INVAR_INLINE F to_float(I a) { return {wasm_f32x4_convert_i32x4(a.v)}; }
INVAR_INLINE F widen_f16(H a) {
  uint16_t h[8];
  wasm_v128_store(h, a.v);
  float t[4];
  for (int i = 0; i < 4; ++i) t[i] = f32_from_f16(h[i]);
  return load(t);
}
INVAR_INLINE H narrow_f16(F a) {
  float t[4];
  store(t, a);
  uint16_t h[4];
  for (int i = 0; i < 4; ++i) h[i] = f16_from_f32(t[i]);
  return load_h(h);
}

INVAR_INLINE D set1_d(double x) { return {wasm_f64x2_splat(x), wasm_f64x2_splat(x)}; }
INVAR_INLINE D add(D a, D b) { return {wasm_f64x2_add(a.lo, b.lo), wasm_f64x2_add(a.hi, b.hi)}; }
INVAR_INLINE D sub(D a, D b) { return {wasm_f64x2_sub(a.lo, b.lo), wasm_f64x2_sub(a.hi, b.hi)}; }
INVAR_INLINE D mul(D a, D b) { return {wasm_f64x2_mul(a.lo, b.lo), wasm_f64x2_mul(a.hi, b.hi)}; }
INVAR_INTERNAL v128_t fma_half_by_lanes(v128_t a, v128_t b, v128_t c) {
  return wasm_f64x2_make(
      soft::fma(wasm_f64x2_extract_lane(a, 0), wasm_f64x2_extract_lane(b, 0), wasm_f64x2_extract_lane(c, 0)),
      soft::fma(wasm_f64x2_extract_lane(a, 1), wasm_f64x2_extract_lane(b, 1), wasm_f64x2_extract_lane(c, 1)));
}
// soft::moderate().
INVAR_INLINE v128_t moderate(v128_t x, double least, double most) {
  v128_t size = wasm_f64x2_abs(x), zero = wasm_f64x2_eq(x, wasm_f64x2_const_splat(0));
  v128_t within = wasm_v128_and(wasm_f64x2_ge(size, wasm_f64x2_splat(least)), wasm_f64x2_le(size, wasm_f64x2_splat(most)));
  return wasm_v128_or(zero, within);
}
// soft::fma(), two at a time.
INVAR_INLINE v128_t fma_half(v128_t a, v128_t b, v128_t c) {
  v128_t fits = wasm_v128_and(moderate(a, 0x1p-450, 0x1p450), moderate(b, 0x1p-450, 0x1p450));
  fits = wasm_v128_and(fits, moderate(c, 0x1p-900, 0x1p900));
  if (__builtin_expect(!wasm_i64x2_all_true(fits), 0)) return fma_half_by_lanes(a, b, c);
  v128_t split = wasm_f64x2_const_splat(0x1.0000002p27), ta = wasm_f64x2_mul(a, split), tb = wasm_f64x2_mul(b, split);
  v128_t ah = wasm_f64x2_sub(ta, wasm_f64x2_sub(ta, a)), al = wasm_f64x2_sub(a, ah);
  v128_t bh = wasm_f64x2_sub(tb, wasm_f64x2_sub(tb, b)), bl = wasm_f64x2_sub(b, bh);
  v128_t p = wasm_f64x2_mul(a, b), low = wasm_f64x2_sub(wasm_f64x2_mul(ah, bh), p);
  low = wasm_f64x2_add(low, wasm_f64x2_mul(ah, bl));
  low = wasm_f64x2_add(low, wasm_f64x2_mul(al, bh));
  low = wasm_f64x2_add(low, wasm_f64x2_mul(al, bl));
  v128_t t = wasm_f64x2_add(low, c), x = wasm_f64x2_sub(t, c);
  v128_t t_low = wasm_f64x2_add(wasm_f64x2_sub(c, wasm_f64x2_sub(t, x)), wasm_f64x2_sub(low, x));
  v128_t v = wasm_f64x2_add(p, t), y = wasm_f64x2_sub(v, p);
  v128_t v_low = wasm_f64x2_add(wasm_f64x2_sub(p, wasm_f64x2_sub(v, y)), wasm_f64x2_sub(t, y));
  // soft::add_to_odd()
  v128_t s = wasm_f64x2_add(t_low, v_low), z = wasm_f64x2_sub(s, t_low);
  v128_t error = wasm_f64x2_add(wasm_f64x2_sub(t_low, wasm_f64x2_sub(s, z)), wasm_f64x2_sub(v_low, z));
  v128_t one = wasm_i64x2_const_splat(1), even = wasm_i64x2_eq(wasm_v128_and(s, one), wasm_i64x2_const_splat(0));
  v128_t inexact = wasm_v128_and(wasm_f64x2_ne(error, wasm_f64x2_const_splat(0)), even);
  v128_t step = wasm_v128_or(wasm_i64x2_shr(wasm_v128_xor(s, error), 63), one);  // -1: towards zero
  v128_t r = wasm_f64x2_add(v, wasm_i64x2_add(s, wasm_v128_and(step, inexact)));
  return wasm_v128_bitselect(wasm_f64x2_add(p, c), r, wasm_f64x2_eq(r, wasm_f64x2_const_splat(0)));  // the sign of a zero
}
INVAR_INLINE D fma(D a, D b, D c) { return {fma_half(a.lo, b.lo, c.lo), fma_half(a.hi, b.hi, c.hi)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE D clamp(D a, double lo, double hi) {
  v128_t l = wasm_f64x2_splat(lo), h = wasm_f64x2_splat(hi);
  return {wasm_f64x2_pmin(wasm_f64x2_pmax(a.lo, l), h), wasm_f64x2_pmin(wasm_f64x2_pmax(a.hi, l), h)};
}
// a * 2^n, where the low 12 bits of t hold n in two's complement and the result is a normal number.
INVAR_INLINE D scale_by_low_bits(D a, D t) {
  return {wasm_i64x2_add(a.lo, wasm_i64x2_shl(t.lo, 52)), wasm_i64x2_add(a.hi, wasm_i64x2_shl(t.hi, 52))};
}

// Binary64 lanes: comparisons false on NaN, blends, bits as 64-bit integers.
INVAR_INLINE D div(D a, D b) { return {wasm_f64x2_div(a.lo, b.lo), wasm_f64x2_div(a.hi, b.hi)}; }
INVAR_INLINE D sqrt(D a) { return {wasm_f64x2_sqrt(a.lo), wasm_f64x2_sqrt(a.hi)}; }
INVAR_INLINE MD lt(D a, D b) { return {wasm_f64x2_lt(a.lo, b.lo), wasm_f64x2_lt(a.hi, b.hi)}; }
INVAR_INLINE D select(MD m, D yes, D no) {
  return {wasm_v128_bitselect(yes.lo, no.lo, m.lo), wasm_v128_bitselect(yes.hi, no.hi, m.hi)};
}
INVAR_INLINE L bits(D a) { return {a.lo, a.hi}; }
INVAR_INLINE D from_bits(L a) { return {a.lo, a.hi}; }
INVAR_INLINE L set1_l(int64_t x) { return {wasm_i64x2_splat(x), wasm_i64x2_splat(x)}; }
INVAR_INLINE L bit_and(L a, L b) { return {wasm_v128_and(a.lo, b.lo), wasm_v128_and(a.hi, b.hi)}; }
INVAR_INLINE L bit_or(L a, L b) { return {wasm_v128_or(a.lo, b.lo), wasm_v128_or(a.hi, b.hi)}; }
INVAR_INLINE L bit_xor(L a, L b) { return {wasm_v128_xor(a.lo, b.lo), wasm_v128_xor(a.hi, b.hi)}; }
INVAR_INLINE L add(L a, L b) { return {wasm_i64x2_add(a.lo, b.lo), wasm_i64x2_add(a.hi, b.hi)}; }
INVAR_INLINE L sub(L a, L b) { return {wasm_i64x2_sub(a.lo, b.lo), wasm_i64x2_sub(a.hi, b.hi)}; }
template <int k>
INVAR_INLINE L shift_left(L a) {
  return {wasm_i64x2_shl(a.lo, k), wasm_i64x2_shl(a.hi, k)};
}
template <int k>
INVAR_INLINE L shift_right(L a) {
  return {wasm_u64x2_shr(a.lo, k), wasm_u64x2_shr(a.hi, k)};
}
// The lanes of a mask, of 32-bit integers, and the low 32 bits of each 64-bit lane.
INVAR_INLINE MD widen(M m) { return {wasm_i64x2_extend_low_i32x4(m.v), wasm_i64x2_extend_high_i32x4(m.v)}; }
INVAR_INLINE D to_double(I a) {
  return {wasm_f64x2_convert_low_i32x4(a.v), wasm_f64x2_convert_low_i32x4(high_half(a.v))};
}
INVAR_INLINE I low_bits(D a) { return {wasm_i32x4_shuffle(a.lo, a.hi, 0, 2, 4, 6)}; }
// table[i] per lane, 0 <= i.
INVAR_INLINE D lookup(const double* table, I i) {
  return {wasm_f64x2_make(table[wasm_i32x4_extract_lane(i.v, 0)], table[wasm_i32x4_extract_lane(i.v, 1)]),
          wasm_f64x2_make(table[wasm_i32x4_extract_lane(i.v, 2)], table[wasm_i32x4_extract_lane(i.v, 3)])};
}

// r[i] lane j <-> r[j] lane i.
INVAR_INLINE void transpose(F (&r)[kW]) {
  v128_t a = wasm_i32x4_shuffle(r[0].v, r[1].v, 0, 4, 1, 5), b = wasm_i32x4_shuffle(r[0].v, r[1].v, 2, 6, 3, 7);
  v128_t c = wasm_i32x4_shuffle(r[2].v, r[3].v, 0, 4, 1, 5), d = wasm_i32x4_shuffle(r[2].v, r[3].v, 2, 6, 3, 7);
  r[0].v = join(a, c), r[1].v = wasm_i64x2_shuffle(a, c, 1, 3);
  r[2].v = join(b, d), r[3].v = wasm_i64x2_shuffle(b, d, 1, 3);
}

// The four numbers of table row i per lane, loaded from memory, 0 <= i. kHasTableRows: whether that
// is faster here.
constexpr bool kHasTableRows = false;
struct TableRow { F f, f_low, g, g_low; };
INVAR_INLINE TableRow load_table_row(const float (*table)[4], I i) {
  F r[4] = {load(table[wasm_i32x4_extract_lane(i.v, 0)]), load(table[wasm_i32x4_extract_lane(i.v, 1)]),
            load(table[wasm_i32x4_extract_lane(i.v, 2)]), load(table[wasm_i32x4_extract_lane(i.v, 3)])};
  transpose(r);
  return {r[0], r[1], r[2], r[3]};
}

// table[i % kTable] per lane, from registers; kTable is 1 if the instruction set has no such
// lookup.
constexpr int kTable = 1;
INVAR_INLINE F pick(const float* table, I) { return set1(table[0]); }

// Truncated and saturated to the integer type; NaN -> 0 (spec/formats.md formats.9), as the
// instructions do.
INVAR_INLINE I truncate(F a) { return {wasm_i32x4_trunc_sat_f32x4(a.v)}; }
INVAR_INLINE int64_t truncated(float x) {
  if (x != x) return 0;
  return x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : static_cast<int64_t>(x);
}
INVAR_INLINE L truncate_wide(F a) {
  return {wasm_i64x2_make(truncated(wasm_f32x4_extract_lane(a.v, 0)), truncated(wasm_f32x4_extract_lane(a.v, 1))),
          wasm_i64x2_make(truncated(wasm_f32x4_extract_lane(a.v, 2)), truncated(wasm_f32x4_extract_lane(a.v, 3)))};
}
INVAR_INLINE void store_i(int32_t* p, I a) { wasm_v128_store(p, a.v); }
INVAR_INLINE void store_l(int64_t* p, L a) {
  wasm_v128_store(p, a.lo);
  wasm_v128_store(p + 2, a.hi);
}
INVAR_INLINE L load_l(const int64_t* p) { return {wasm_v128_load(p), wasm_v128_load(p + 2)}; }
// Four vectors as bytes, each integer saturated to the range of the type.
INVAR_INLINE v128_t limited(I a, I b) { return wasm_i16x8_narrow_i32x4(a.v, b.v); }
INVAR_INLINE void store_limited(int8_t* p, const I (&a)[4]) {
  wasm_v128_store(p, wasm_i8x16_narrow_i16x8(limited(a[0], a[1]), limited(a[2], a[3])));
}
INVAR_INLINE void store_limited(uint8_t* p, const I (&a)[4]) {
  wasm_v128_store(p, wasm_u8x16_narrow_i16x8(limited(a[0], a[1]), limited(a[2], a[3])));
}
// Integers to floats, rounded once: there is no vector instruction for it.
INVAR_INLINE F to_float(L a) {
  return {wasm_f32x4_make(static_cast<float>(wasm_i64x2_extract_lane(a.lo, 0)),
                          static_cast<float>(wasm_i64x2_extract_lane(a.lo, 1)),
                          static_cast<float>(wasm_i64x2_extract_lane(a.hi, 0)),
                          static_cast<float>(wasm_i64x2_extract_lane(a.hi, 1)))};
}

// The lanes joined by halving strides 2, 1: lane j += lane j + stride (spec/reduction.md
// reduction.4).
INVAR_INLINE float join_add(F a) {
  v128_t r = wasm_f32x4_add(a.v, high_half(a.v));
  return wasm_f32x4_extract_lane(r, 0) + wasm_f32x4_extract_lane(r, 1);
}
INVAR_INLINE float first(F a) { return wasm_f32x4_extract_lane(a.v, 0); }

}  // namespace invar::num::INVAR_ISA_NS
