// Four lanes: Advanced SIMD of AArch64 (32-bit Arm flushes subnormals and is not supported).
#pragma once

#include <arm_neon.h>

#include <cstdint>

// One operation, one line.
// clang-format off
namespace invar::num::INVAR_ISA_NS {

constexpr int kW = 4;
struct F { float32x4_t v; };
struct D { float64x2_t lo, hi; };
struct I { int32x4_t v; };
struct L { int64x2_t lo, hi; };
struct MD { uint64x2_t lo, hi; };
struct H { uint16x4_t v; };
struct M { uint32x4_t v; };

INVAR_INLINE F zero() { return {vdupq_n_f32(0)}; }
INVAR_INLINE F set1(float x) { return {vdupq_n_f32(x)}; }
INVAR_INLINE F load(const float* p) { return {vld1q_f32(p)}; }
INVAR_INLINE void store(float* p, F a) { vst1q_f32(p, a.v); }
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

INVAR_INLINE F add(F a, F b) { return {vaddq_f32(a.v, b.v)}; }
INVAR_INLINE F sub(F a, F b) { return {vsubq_f32(a.v, b.v)}; }
INVAR_INLINE F mul(F a, F b) { return {vmulq_f32(a.v, b.v)}; }
INVAR_INLINE F div(F a, F b) { return {vdivq_f32(a.v, b.v)}; }
INVAR_INLINE F sqrt(F a) { return {vsqrtq_f32(a.v)}; }
INVAR_INLINE F fma(F a, F b, F c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
INVAR_INLINE F floor(F a) { return {vrndmq_f32(a.v)}; }
INVAR_INLINE F trunc(F a) { return {vrndq_f32(a.v)}; }
INVAR_INLINE F round_even(F a) { return {vrndnq_f32(a.v)}; }
// The larger and the smaller of two numbers; of equal ones, and if a is NaN, either; NaN if b is.
INVAR_INLINE F larger(F a, F b) { return {vmaxq_f32(a.v, b.v)}; }
INVAR_INLINE F smaller(F a, F b) { return {vminq_f32(a.v, b.v)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE F clamp(F a, float lo, float hi) {
  return {vminq_f32(vmaxq_f32(a.v, vdupq_n_f32(lo)), vdupq_n_f32(hi))};
}

INVAR_INLINE M lt(F a, F b) { return {vcltq_f32(a.v, b.v)}; }
INVAR_INLINE M eq(F a, F b) { return {vceqq_f32(a.v, b.v)}; }
INVAR_INLINE M unordered(F a, F b) {
  return {vmvnq_u32(vandq_u32(vceqq_f32(a.v, a.v), vceqq_f32(b.v, b.v)))};
}
INVAR_INLINE M both(M a, M b) { return {vandq_u32(a.v, b.v)}; }
INVAR_INLINE M either(M a, M b) { return {vorrq_u32(a.v, b.v)}; }
INVAR_INLINE bool any(M a) { return vmaxvq_u32(a.v) != 0; }
INVAR_INLINE bool all(M a) { return vminvq_u32(a.v) != 0; }
INVAR_INLINE F select(M m, F yes, F no) { return {vbslq_f32(m.v, yes.v, no.v)}; }

INVAR_INLINE I bits(F a) { return {vreinterpretq_s32_f32(a.v)}; }
INVAR_INLINE F from_bits(I a) { return {vreinterpretq_f32_s32(a.v)}; }
INVAR_INLINE I set1_i(int32_t x) { return {vdupq_n_s32(x)}; }
INVAR_INLINE I bit_and(I a, I b) { return {vandq_s32(a.v, b.v)}; }
INVAR_INLINE I bit_or(I a, I b) { return {vorrq_s32(a.v, b.v)}; }
INVAR_INLINE I bit_xor(I a, I b) { return {veorq_s32(a.v, b.v)}; }
INVAR_INLINE I add(I a, I b) { return {vaddq_s32(a.v, b.v)}; }
INVAR_INLINE I sub(I a, I b) { return {vsubq_s32(a.v, b.v)}; }
// Per lane, of its two 16-bit integers: low * low + high * high.
INVAR_INLINE I pair_products(I a, I b) {
  int16x8_t x = vreinterpretq_s16_s32(a.v), y = vreinterpretq_s16_s32(b.v);
  return {vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y))};
}
template <int k>
INVAR_INLINE I shift_left(I a) {
  return {vshlq_n_s32(a.v, k)};
}
template <int k>
INVAR_INLINE I shift_right(I a) {
  return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v), k))};
}
INVAR_INLINE M gt(I a, I b) { return {vcgtq_s32(a.v, b.v)}; }
INVAR_INLINE I select(M m, I yes, I no) { return {vbslq_s32(m.v, yes.v, no.v)}; }

INVAR_INLINE H load_h(const uint16_t* p) { return {vld1_u16(p)}; }
INVAR_INLINE void store_h(uint16_t* p, H a) { vst1_u16(p, a.v); }
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
INVAR_INLINE I widen_u16(H a) { return {vreinterpretq_s32_u32(vmovl_u16(a.v))}; }
INVAR_INLINE H narrow_u16(I a) { return {vmovn_u32(vreinterpretq_u32_s32(a.v))}; }
// Bytes, to and from 32-bit integers 0 ... 255, and integers to floats, rounded to nearest even.
INVAR_INLINE I load_u8_n(const uint8_t* p, int n) {
  uint8_t t[8] = {};
  for (int i = 0; i < n && i < 4; ++i) t[i] = p[i];
  return widen_u16({vget_low_u16(vmovl_u8(vld1_u8(t)))});
}
INVAR_INLINE I load_u8(const uint8_t* p) {
  uint32_t t;
  __builtin_memcpy(&t, p, 4);
  return widen_u16({vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(t))))});
}
INVAR_INLINE void store_u8(uint8_t* p, I a) {
  uint16x4_t h = narrow_u16(a).v;
  uint32_t t = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(h, h))), 0);
  __builtin_memcpy(p, &t, 4);
}
INVAR_INLINE F to_float(I a) { return {vcvtq_f32_s32(a.v)}; }
INVAR_INLINE F widen_f16(H a) { return {vcvt_f32_f16(vreinterpret_f16_u16(a.v))}; }
INVAR_INLINE H narrow_f16(F a) { return {vreinterpret_u16_f16(vcvt_f16_f32(a.v))}; }

INVAR_INLINE D set1_d(double x) { return {vdupq_n_f64(x), vdupq_n_f64(x)}; }
INVAR_INLINE D to_double(F a) { return {vcvt_f64_f32(vget_low_f32(a.v)), vcvt_high_f64_f32(a.v)}; }
INVAR_INLINE F to_float(D a) { return {vcvt_high_f32_f64(vcvt_f32_f64(a.lo), a.hi)}; }
INVAR_INLINE D add(D a, D b) { return {vaddq_f64(a.lo, b.lo), vaddq_f64(a.hi, b.hi)}; }
INVAR_INLINE D sub(D a, D b) { return {vsubq_f64(a.lo, b.lo), vsubq_f64(a.hi, b.hi)}; }
INVAR_INLINE D mul(D a, D b) { return {vmulq_f64(a.lo, b.lo), vmulq_f64(a.hi, b.hi)}; }
INVAR_INLINE D fma(D a, D b, D c) { return {vfmaq_f64(c.lo, a.lo, b.lo), vfmaq_f64(c.hi, a.hi, b.hi)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE D clamp(D a, double lo, double hi) {
  float64x2_t l = vdupq_n_f64(lo), h = vdupq_n_f64(hi);
  return {vminq_f64(vmaxq_f64(a.lo, l), h), vminq_f64(vmaxq_f64(a.hi, l), h)};
}
// a * 2^n, where the low 12 bits of t hold n in two's complement and the result is a normal number.
INVAR_INLINE float64x2_t scale_half(float64x2_t a, float64x2_t t) {
  int64x2_t n = vshlq_n_s64(vreinterpretq_s64_f64(t), 52);
  return vreinterpretq_f64_s64(vaddq_s64(vreinterpretq_s64_f64(a), n));
}
INVAR_INLINE D scale_by_low_bits(D a, D t) { return {scale_half(a.lo, t.lo), scale_half(a.hi, t.hi)}; }

// Binary64 lanes: comparisons false on NaN, blends, bits as 64-bit integers.
INVAR_INLINE D div(D a, D b) { return {vdivq_f64(a.lo, b.lo), vdivq_f64(a.hi, b.hi)}; }
INVAR_INLINE D sqrt(D a) { return {vsqrtq_f64(a.lo), vsqrtq_f64(a.hi)}; }
INVAR_INLINE MD lt(D a, D b) { return {vcltq_f64(a.lo, b.lo), vcltq_f64(a.hi, b.hi)}; }
INVAR_INLINE D select(MD m, D yes, D no) {
  return {vbslq_f64(m.lo, yes.lo, no.lo), vbslq_f64(m.hi, yes.hi, no.hi)};
}
INVAR_INLINE L bits(D a) { return {vreinterpretq_s64_f64(a.lo), vreinterpretq_s64_f64(a.hi)}; }
INVAR_INLINE D from_bits(L a) { return {vreinterpretq_f64_s64(a.lo), vreinterpretq_f64_s64(a.hi)}; }
INVAR_INLINE L set1_l(int64_t x) { return {vdupq_n_s64(x), vdupq_n_s64(x)}; }
INVAR_INLINE L bit_and(L a, L b) { return {vandq_s64(a.lo, b.lo), vandq_s64(a.hi, b.hi)}; }
INVAR_INLINE L bit_or(L a, L b) { return {vorrq_s64(a.lo, b.lo), vorrq_s64(a.hi, b.hi)}; }
INVAR_INLINE L bit_xor(L a, L b) { return {veorq_s64(a.lo, b.lo), veorq_s64(a.hi, b.hi)}; }
INVAR_INLINE L add(L a, L b) { return {vaddq_s64(a.lo, b.lo), vaddq_s64(a.hi, b.hi)}; }
INVAR_INLINE L sub(L a, L b) { return {vsubq_s64(a.lo, b.lo), vsubq_s64(a.hi, b.hi)}; }
template <int k>
INVAR_INLINE L shift_left(L a) {
  return {vshlq_n_s64(a.lo, k), vshlq_n_s64(a.hi, k)};
}
template <int k>
INVAR_INLINE L shift_right(L a) {
  return {vreinterpretq_s64_u64(vshrq_n_u64(vreinterpretq_u64_s64(a.lo), k)),
          vreinterpretq_s64_u64(vshrq_n_u64(vreinterpretq_u64_s64(a.hi), k))};
}
// The lanes of a mask, of 32-bit integers, and the low 32 bits of each 64-bit lane.
INVAR_INLINE MD widen(M m) {
  int32x4_t i = vreinterpretq_s32_u32(m.v);
  return {vreinterpretq_u64_s64(vmovl_s32(vget_low_s32(i))), vreinterpretq_u64_s64(vmovl_high_s32(i))};
}
INVAR_INLINE D to_double(I a) {
  return {vcvtq_f64_s64(vmovl_s32(vget_low_s32(a.v))), vcvtq_f64_s64(vmovl_high_s32(a.v))};
}
INVAR_INLINE I low_bits(D a) {
  return {vmovn_high_s64(vmovn_s64(vreinterpretq_s64_f64(a.lo)), vreinterpretq_s64_f64(a.hi))};
}
// table[i] per lane, 0 <= i.
INVAR_INLINE D lookup(const double* table, I i) {
  float64x2_t lo = vdupq_n_f64(table[vgetq_lane_s32(i.v, 0)]), hi = vdupq_n_f64(table[vgetq_lane_s32(i.v, 2)]);
  return {vsetq_lane_f64(table[vgetq_lane_s32(i.v, 1)], lo, 1), vsetq_lane_f64(table[vgetq_lane_s32(i.v, 3)], hi, 1)};
}

// The four numbers of table row i per lane, loaded from memory, 0 <= i. kHasTableRows: whether that
// is faster here.
constexpr bool kHasTableRows = false;
struct TableRow { F f, f_low, g, g_low; };
INVAR_INLINE TableRow load_table_row(const float (*table)[4], I i) {
  float32x4_t r0 = vld1q_f32(table[vgetq_lane_s32(i.v, 0)]), r1 = vld1q_f32(table[vgetq_lane_s32(i.v, 1)]);
  float32x4_t r2 = vld1q_f32(table[vgetq_lane_s32(i.v, 2)]), r3 = vld1q_f32(table[vgetq_lane_s32(i.v, 3)]);
  float32x4x2_t p = vzipq_f32(r0, r2), q = vzipq_f32(r1, r3);
  float32x4x2_t s = vzipq_f32(p.val[0], q.val[0]), t = vzipq_f32(p.val[1], q.val[1]);
  return {{s.val[0]}, {s.val[1]}, {t.val[0]}, {t.val[1]}};
}

// table[i % kTable] per lane, from registers; kTable is 1 if the instruction set has no such
// lookup.
constexpr int kTable = 1;
INVAR_INLINE F pick(const float* table, I) { return set1(table[0]); }

// Truncated and saturated to the integer type; NaN -> 0 (spec/formats.md formats.9), as the
// instructions do.
INVAR_INLINE I truncate(F a) { return {vcvtq_s32_f32(a.v)}; }
INVAR_INLINE L truncate_wide(F a) {
  D d = to_double(a);
  return {vcvtq_s64_f64(d.lo), vcvtq_s64_f64(d.hi)};
}
INVAR_INLINE void store_i(int32_t* p, I a) { vst1q_s32(p, a.v); }
INVAR_INLINE void store_l(int64_t* p, L a) {
  vst1q_s64(p, a.lo);
  vst1q_s64(p + 2, a.hi);
}
INVAR_INLINE L load_l(const int64_t* p) { return {vld1q_s64(p), vld1q_s64(p + 2)}; }
// Four vectors as bytes, each integer saturated to the range of the type.
INVAR_INLINE int16x8_t limited(I a, I b) { return vcombine_s16(vqmovn_s32(a.v), vqmovn_s32(b.v)); }
INVAR_INLINE void store_limited(int8_t* p, const I (&a)[4]) {
  vst1q_s8(p, vcombine_s8(vqmovn_s16(limited(a[0], a[1])), vqmovn_s16(limited(a[2], a[3]))));
}
INVAR_INLINE void store_limited(uint8_t* p, const I (&a)[4]) {
  vst1q_u8(p, vcombine_u8(vqmovun_s16(limited(a[0], a[1])), vqmovun_s16(limited(a[2], a[3]))));
}
// Integers to floats, rounded once: there is no vector instruction for it.
INVAR_INLINE F to_float(L a) {
  float t[4] = {static_cast<float>(vgetq_lane_s64(a.lo, 0)), static_cast<float>(vgetq_lane_s64(a.lo, 1)),
                static_cast<float>(vgetq_lane_s64(a.hi, 0)), static_cast<float>(vgetq_lane_s64(a.hi, 1))};
  return {vld1q_f32(t)};
}

// The lanes joined by halving strides 2, 1: lane j += lane j + stride (spec/reduction.md
// reduction.4).
INVAR_INLINE float join_add(F a) {
  float32x2_t r = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(r, 0) + vget_lane_f32(r, 1);
}
INVAR_INLINE float first(F a) { return vgetq_lane_f32(a.v, 0); }

// r[i] lane j <-> r[j] lane i.
INVAR_INLINE void transpose(F (&r)[kW]) {
  float32x4x2_t a = vtrnq_f32(r[0].v, r[1].v), b = vtrnq_f32(r[2].v, r[3].v);
  r[0].v = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  r[1].v = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  r[2].v = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  r[3].v = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

}  // namespace invar::num::INVAR_ISA_NS
