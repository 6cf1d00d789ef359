// Sixteen lanes: AVX-512 F, BW, DQ and VL.
#pragma once

#include <immintrin.h>

#include <cstdint>

// GCC's own intrinsics start from deliberately undefined registers and warn about it where they are
// inlined (GCC bug 105593), that is anywhere in the file.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// One operation, one line.
// clang-format off
namespace invar::num::INVAR_ISA_NS {

constexpr int kW = 16;
struct F { __m512 v; };
struct D { __m512d lo, hi; };
struct I { __m512i v; };
struct L { __m512i lo, hi; };
struct MD { __mmask8 lo, hi; };
struct H { __m256i v; };
struct M { __mmask16 v; };

INVAR_INLINE __mmask16 first_n(int n) {
  return static_cast<__mmask16>(n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1);
}
INVAR_INLINE F zero() { return {_mm512_setzero_ps()}; }
INVAR_INLINE F set1(float x) { return {_mm512_set1_ps(x)}; }
INVAR_INLINE F load(const float* p) { return {_mm512_loadu_ps(p)}; }
INVAR_INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
INVAR_INLINE F load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_n(n), p)}; }
INVAR_INLINE void store_n(float* p, F a, int n) { _mm512_mask_storeu_ps(p, first_n(n), a.v); }

INVAR_INLINE F add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
INVAR_INLINE F sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
INVAR_INLINE F mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
INVAR_INLINE F div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
INVAR_INLINE F sqrt(F a) { return {_mm512_sqrt_ps(a.v)}; }
INVAR_INLINE F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
INVAR_INLINE F floor(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
INVAR_INLINE F trunc(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
INVAR_INLINE F round_even(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
// The larger and the smaller of two numbers; of equal ones, and if a is NaN, either; NaN if b is.
INVAR_INLINE F larger(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
INVAR_INLINE F smaller(F a, F b) { return {_mm512_min_ps(a.v, b.v)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE F clamp(F a, float lo, float hi) {
  return {_mm512_min_ps(_mm512_set1_ps(hi), _mm512_max_ps(_mm512_set1_ps(lo), a.v))};
}

INVAR_INLINE M lt(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
INVAR_INLINE M eq(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
INVAR_INLINE M unordered(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)}; }
INVAR_INLINE M both(M a, M b) { return {static_cast<__mmask16>(a.v & b.v)}; }
INVAR_INLINE M either(M a, M b) { return {static_cast<__mmask16>(a.v | b.v)}; }
INVAR_INLINE bool any(M a) { return a.v != 0; }
INVAR_INLINE bool all(M a) { return a.v == 0xffff; }
INVAR_INLINE F select(M m, F yes, F no) { return {_mm512_mask_blend_ps(m.v, no.v, yes.v)}; }

INVAR_INLINE I bits(F a) { return {_mm512_castps_si512(a.v)}; }
INVAR_INLINE F from_bits(I a) { return {_mm512_castsi512_ps(a.v)}; }
INVAR_INLINE I set1_i(int32_t x) { return {_mm512_set1_epi32(x)}; }
INVAR_INLINE I bit_and(I a, I b) { return {_mm512_and_si512(a.v, b.v)}; }
INVAR_INLINE I bit_or(I a, I b) { return {_mm512_or_si512(a.v, b.v)}; }
INVAR_INLINE I bit_xor(I a, I b) { return {_mm512_xor_si512(a.v, b.v)}; }
INVAR_INLINE I add(I a, I b) { return {_mm512_add_epi32(a.v, b.v)}; }
INVAR_INLINE I sub(I a, I b) { return {_mm512_sub_epi32(a.v, b.v)}; }
// Per lane, of its two 16-bit integers: low * low + high * high.
INVAR_INLINE I pair_products(I a, I b) { return {_mm512_madd_epi16(a.v, b.v)}; }
template <int k>
INVAR_INLINE I shift_left(I a) {
  return {_mm512_slli_epi32(a.v, k)};
}
template <int k>
INVAR_INLINE I shift_right(I a) {
  return {_mm512_srli_epi32(a.v, k)};
}
INVAR_INLINE M gt(I a, I b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
INVAR_INLINE I select(M m, I yes, I no) { return {_mm512_mask_blend_epi32(m.v, no.v, yes.v)}; }

// The store rule (lane.h) by an instruction that classifies numbers through a table: both kinds of
// NaN keep the preset value, all others are copied. If no exponent bit is set, only the sign
// remains.
INVAR_INLINE F one_nan(F a) {
  return {_mm512_fixupimm_ps(_mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)), a.v, _mm512_set1_epi32(0x11111100), 0)};
}
INVAR_INLINE F canonicalize(F a) {
  const __m512i u = _mm512_castps_si512(a.v);
  const __mmask16 none = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
  return one_nan({_mm512_castsi512_ps(_mm512_mask_and_epi32(u, none, u, _mm512_set1_epi32(INT32_MIN)))});
}

INVAR_INLINE H load_h(const uint16_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
INVAR_INLINE void store_h(uint16_t* p, H a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
INVAR_INLINE H load_h_n(const uint16_t* p, int n) { return {_mm256_maskz_loadu_epi16(first_n(n), p)}; }
INVAR_INLINE void store_h_n(uint16_t* p, H a, int n) { _mm256_mask_storeu_epi16(p, first_n(n), a.v); }
INVAR_INLINE I widen_u16(H a) { return {_mm512_cvtepu16_epi32(a.v)}; }
INVAR_INLINE H narrow_u16(I a) { return {_mm512_cvtepi32_epi16(a.v)}; }
// Bytes, to and from 32-bit integers 0 ... 255, and integers to floats, rounded to nearest even.
INVAR_INLINE I load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INVAR_INLINE I load_u8_n(const uint8_t* p, int n) {
  return {_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_n(n), p))};
}
INVAR_INLINE void store_u8(uint8_t* p, I a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
INVAR_INLINE F to_float(I a) { return {_mm512_cvtepi32_ps(a.v)}; }
INVAR_INLINE F widen_f16(H a) { return {_mm512_cvtph_ps(a.v)}; }
INVAR_INLINE H narrow_f16(F a) {
  return {_mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

INVAR_INLINE D set1_d(double x) { return {_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
INVAR_INLINE D to_double(F a) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1))};
}
INVAR_INLINE F to_float(D a) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.lo)), _mm512_cvtpd_ps(a.hi), 1)};
}
INVAR_INLINE D add(D a, D b) { return {_mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi)}; }
INVAR_INLINE D sub(D a, D b) { return {_mm512_sub_pd(a.lo, b.lo), _mm512_sub_pd(a.hi, b.hi)}; }
INVAR_INLINE D mul(D a, D b) { return {_mm512_mul_pd(a.lo, b.lo), _mm512_mul_pd(a.hi, b.hi)}; }
INVAR_INLINE D fma(D a, D b, D c) {
  return {_mm512_fmadd_pd(a.lo, b.lo, c.lo), _mm512_fmadd_pd(a.hi, b.hi, c.hi)};
}
// x clamped to [lo, hi]; NaN stays NaN (max and min return their second operand if one is NaN).
INVAR_INLINE D clamp(D a, double lo, double hi) {
  __m512d l = _mm512_set1_pd(lo), h = _mm512_set1_pd(hi);
  return {_mm512_min_pd(h, _mm512_max_pd(l, a.lo)), _mm512_min_pd(h, _mm512_max_pd(l, a.hi))};
}
// a * 2^n, where the low 12 bits of t hold n in two's complement and the result is a normal number.
INVAR_INLINE D scale_by_low_bits(D a, D t) {
  __m512i lo = _mm512_slli_epi64(_mm512_castpd_si512(t.lo), 52),
          hi = _mm512_slli_epi64(_mm512_castpd_si512(t.hi), 52);
  return {_mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a.lo), lo)),
          _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a.hi), hi))};
}

// Binary64 lanes: comparisons false on NaN, blends, bits as 64-bit integers.
INVAR_INLINE D div(D a, D b) { return {_mm512_div_pd(a.lo, b.lo), _mm512_div_pd(a.hi, b.hi)}; }
INVAR_INLINE D sqrt(D a) { return {_mm512_sqrt_pd(a.lo), _mm512_sqrt_pd(a.hi)}; }
INVAR_INLINE MD lt(D a, D b) {
  return {_mm512_cmp_pd_mask(a.lo, b.lo, _CMP_LT_OQ), _mm512_cmp_pd_mask(a.hi, b.hi, _CMP_LT_OQ)};
}
INVAR_INLINE D select(MD m, D yes, D no) {
  return {_mm512_mask_blend_pd(m.lo, no.lo, yes.lo), _mm512_mask_blend_pd(m.hi, no.hi, yes.hi)};
}
INVAR_INLINE L bits(D a) { return {_mm512_castpd_si512(a.lo), _mm512_castpd_si512(a.hi)}; }
INVAR_INLINE D from_bits(L a) { return {_mm512_castsi512_pd(a.lo), _mm512_castsi512_pd(a.hi)}; }
INVAR_INLINE L set1_l(int64_t x) { return {_mm512_set1_epi64(x), _mm512_set1_epi64(x)}; }
INVAR_INLINE L bit_and(L a, L b) { return {_mm512_and_si512(a.lo, b.lo), _mm512_and_si512(a.hi, b.hi)}; }
INVAR_INLINE L bit_or(L a, L b) { return {_mm512_or_si512(a.lo, b.lo), _mm512_or_si512(a.hi, b.hi)}; }
INVAR_INLINE L bit_xor(L a, L b) { return {_mm512_xor_si512(a.lo, b.lo), _mm512_xor_si512(a.hi, b.hi)}; }
INVAR_INLINE L add(L a, L b) { return {_mm512_add_epi64(a.lo, b.lo), _mm512_add_epi64(a.hi, b.hi)}; }
INVAR_INLINE L sub(L a, L b) { return {_mm512_sub_epi64(a.lo, b.lo), _mm512_sub_epi64(a.hi, b.hi)}; }
template <int k>
INVAR_INLINE L shift_left(L a) {
  return {_mm512_slli_epi64(a.lo, k), _mm512_slli_epi64(a.hi, k)};
}
template <int k>
INVAR_INLINE L shift_right(L a) {
  return {_mm512_srli_epi64(a.lo, k), _mm512_srli_epi64(a.hi, k)};
}
// The lanes of a mask, of 32-bit integers, and the low 32 bits of each 64-bit lane.
INVAR_INLINE MD widen(M m) { return {static_cast<__mmask8>(m.v), static_cast<__mmask8>(m.v >> 8)}; }
INVAR_INLINE D to_double(I a) {
  return {_mm512_cvtepi32_pd(_mm512_castsi512_si256(a.v)), _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(a.v, 1))};
}
INVAR_INLINE I low_bits(D a) {
  return {_mm512_inserti32x8(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(_mm512_castpd_si512(a.lo))),
                             _mm512_cvtepi64_epi32(_mm512_castpd_si512(a.hi)), 1)};
}
// table[i] per lane, 0 <= i.
INVAR_INLINE D lookup(const double* table, I i) {
  return {_mm512_i32gather_pd(_mm512_castsi512_si256(i.v), table, 8),
          _mm512_i32gather_pd(_mm512_extracti32x8_epi32(i.v, 1), table, 8)};
}

// The four numbers of table row i per lane, loaded from memory, 0 <= i. Indices leave the register
// 64 bits at a time: partial reads of a 64-byte store are not forwarded before it is in the cache
// (Sapphire Rapids: tanh 1.6 ns per element with them, 0.8 like this).
constexpr bool kHasTableRows = true;
struct TableRow { F f, f_low, g, g_low; };
INVAR_INLINE __m256 load_two_rows(const float (*table)[4], uint64_t first, uint64_t second) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(table[0] + first)), _mm_load_ps(table[0] + second), 1);
}
INVAR_INLINE TableRow load_table_row(const float (*table)[4], I i) {
  __m512i at = _mm512_slli_epi32(i.v, 2);
  const __m128i quarter[4] = {_mm512_castsi512_si128(at), _mm512_extracti32x4_epi32(at, 1),
                              _mm512_extracti32x4_epi32(at, 2), _mm512_extracti32x4_epi32(at, 3)};
  uint64_t place[4][4];
  for (int q = 0; q < 4; ++q) {
    uint64_t low = static_cast<uint64_t>(_mm_cvtsi128_si64(quarter[q]));
    uint64_t high = static_cast<uint64_t>(_mm_extract_epi64(quarter[q], 1));
    place[q][0] = static_cast<uint32_t>(low), place[q][1] = low >> 32;
    place[q][2] = static_cast<uint32_t>(high), place[q][3] = high >> 32;
  }
  __m512 r[4];
  for (int j = 0; j < 4; ++j)
    r[j] = _mm512_insertf32x8(_mm512_castps256_ps512(load_two_rows(table, place[0][j], place[1][j])),
                              load_two_rows(table, place[2][j], place[3][j]), 1);
  __m512 p = _mm512_unpacklo_ps(r[0], r[1]), q = _mm512_unpacklo_ps(r[2], r[3]);
  __m512 s = _mm512_unpackhi_ps(r[0], r[1]), t = _mm512_unpackhi_ps(r[2], r[3]);
  return {{_mm512_shuffle_ps(p, q, 0x44)}, {_mm512_shuffle_ps(p, q, 0xee)}, {_mm512_shuffle_ps(s, t, 0x44)}, {_mm512_shuffle_ps(s, t, 0xee)}};
}

// table[i % kTable] per lane, from registers; kTable is 1 if the instruction set has no such
// lookup.
constexpr int kTable = 32;
INVAR_INLINE F pick(const float* table, I i) {
  return {_mm512_permutex2var_ps(_mm512_load_ps(table), i.v, _mm512_load_ps(table + 16))};
}

// Truncated and saturated to the integer type; NaN -> 0 (spec/formats.md formats.9). The
// instructions return the smallest integer for values out of range.
INVAR_INLINE I truncate(F a) {
  __mmask16 high = _mm512_cmp_ps_mask(a.v, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);
  __mmask16 number = _mm512_cmp_ps_mask(a.v, a.v, _CMP_ORD_Q);
  __m512i r = _mm512_maskz_cvttps_epi32(number, a.v);
  return {_mm512_mask_mov_epi32(r, high, _mm512_set1_epi32(INT32_MAX))};
}
INVAR_INLINE __m512i truncate_half(__m256 a) {
  __mmask8 high = _mm256_cmp_ps_mask(a, _mm256_set1_ps(0x1p63f), _CMP_GE_OQ);
  __mmask8 number = _mm256_cmp_ps_mask(a, a, _CMP_ORD_Q);
  __m512i r = _mm512_maskz_cvttps_epi64(number, a);
  return _mm512_mask_mov_epi64(r, high, _mm512_set1_epi64(INT64_MAX));
}
INVAR_INLINE L truncate_wide(F a) {
  return {truncate_half(_mm512_castps512_ps256(a.v)), truncate_half(_mm512_extractf32x8_ps(a.v, 1))};
}
INVAR_INLINE void store_i(int32_t* p, I a) { _mm512_storeu_si512(p, a.v); }
INVAR_INLINE void store_l(int64_t* p, L a) {
  _mm512_storeu_si512(p, a.lo);
  _mm512_storeu_si512(p + 8, a.hi);
}
INVAR_INLINE L load_l(const int64_t* p) { return {_mm512_loadu_si512(p), _mm512_loadu_si512(p + 8)}; }
// Four vectors as bytes, each integer saturated to the range of the type.
INVAR_INLINE void store_limited(int8_t* p, const I (&a)[4]) {
  for (int i = 0; i < 4; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 16 * i), _mm512_cvtsepi32_epi8(a[i].v));
}
INVAR_INLINE void store_limited(uint8_t* p, const I (&a)[4]) {
  for (int i = 0; i < 4; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 16 * i),
                     _mm512_cvtusepi32_epi8(_mm512_max_epi32(a[i].v, _mm512_setzero_si512())));
}
// Integers to floats, rounded once.
INVAR_INLINE F to_float(L a) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtepi64_ps(a.lo)), _mm512_cvtepi64_ps(a.hi), 1)};
}

// The lanes joined by halving strides 8, 4, 2, 1: lane j += lane j + stride (spec/reduction.md
// reduction.4).
INVAR_INLINE float join_add(F a) {
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 r = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  r = _mm_add_ps(r, _mm_movehl_ps(r, r));
  return _mm_cvtss_f32(_mm_add_ss(r, _mm_movehdup_ps(r)));
}
INVAR_INLINE float first(F a) { return _mm512_cvtss_f32(a.v); }

// r[i] lane j <-> r[j] lane i.
INVAR_INLINE void transpose(F (&r)[kW]) {
  __m512 t[16], u[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i].v, r[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(r[i].v, r[i + 1].v);
  }
  for (int i = 0; i < 16; i += 4)  // u[i + c]: column c of each quarter, of rows i ... i + 3
    for (int h = 0; h < 2; ++h) {
      u[i + 2 * h] = _mm512_shuffle_ps(t[i + h], t[i + h + 2], 0x44);
      u[i + 2 * h + 1] = _mm512_shuffle_ps(t[i + h], t[i + h + 2], 0xee);
    }
  for (int c = 0; c < 4; ++c) {
    __m512 a = _mm512_shuffle_f32x4(u[c], u[c + 4], 0x88), b = _mm512_shuffle_f32x4(u[c], u[c + 4], 0xdd);
    __m512 d = _mm512_shuffle_f32x4(u[c + 8], u[c + 12], 0x88), e = _mm512_shuffle_f32x4(u[c + 8], u[c + 12], 0xdd);
    r[c].v = _mm512_shuffle_f32x4(a, d, 0x88);
    r[c + 4].v = _mm512_shuffle_f32x4(b, e, 0x88);
    r[c + 8].v = _mm512_shuffle_f32x4(a, d, 0xdd);
    r[c + 12].v = _mm512_shuffle_f32x4(b, e, 0xdd);
  }
}

}  // namespace invar::num::INVAR_ISA_NS
