// Eight lanes: AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

// GCC's gathers start from deliberately undefined registers (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// One operation, one line.
// clang-format off
namespace invar::num::INVAR_ISA_NS {

constexpr int kW = 8;
struct F { __m256 v; };
struct D { __m256d lo, hi; };
struct I { __m256i v; };
struct L { __m256i lo, hi; };
struct MD { __m256d lo, hi; };
struct H { __m128i v; };
struct M { __m256 v; };

INVAR_INLINE __m256i first_n(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INVAR_INLINE F zero() { return {_mm256_setzero_ps()}; }
INVAR_INLINE F set1(float x) { return {_mm256_set1_ps(x)}; }
INVAR_INLINE F load(const float* p) { return {_mm256_loadu_ps(p)}; }
INVAR_INLINE void store(float* p, F a) { _mm256_storeu_ps(p, a.v); }
INVAR_INLINE F load_n(const float* p, int n) { return {_mm256_maskload_ps(p, first_n(n))}; }
INVAR_INLINE void store_n(float* p, F a, int n) { _mm256_maskstore_ps(p, first_n(n), a.v); }

INVAR_INLINE F add(F a, F b) { return {_mm256_add_ps(a.v, b.v)}; }
INVAR_INLINE F sub(F a, F b) { return {_mm256_sub_ps(a.v, b.v)}; }
INVAR_INLINE F mul(F a, F b) { return {_mm256_mul_ps(a.v, b.v)}; }
INVAR_INLINE F div(F a, F b) { return {_mm256_div_ps(a.v, b.v)}; }
INVAR_INLINE F sqrt(F a) { return {_mm256_sqrt_ps(a.v)}; }
INVAR_INLINE F fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
INVAR_INLINE F floor(F a) { return {_mm256_floor_ps(a.v)}; }
INVAR_INLINE F trunc(F a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
INVAR_INLINE F round_even(F a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
// The larger and the smaller of two numbers; of equal ones, and if a is NaN, either; NaN if b is.
INVAR_INLINE F larger(F a, F b) { return {_mm256_max_ps(a.v, b.v)}; }
INVAR_INLINE F smaller(F a, F b) { return {_mm256_min_ps(a.v, b.v)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE F clamp(F a, float lo, float hi) {
  return {_mm256_min_ps(_mm256_set1_ps(hi), _mm256_max_ps(_mm256_set1_ps(lo), a.v))};
}

INVAR_INLINE M lt(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
INVAR_INLINE M eq(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
INVAR_INLINE M unordered(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_UNORD_Q)}; }
INVAR_INLINE M both(M a, M b) { return {_mm256_and_ps(a.v, b.v)}; }
INVAR_INLINE M either(M a, M b) { return {_mm256_or_ps(a.v, b.v)}; }
INVAR_INLINE bool any(M a) { return _mm256_movemask_ps(a.v) != 0; }
INVAR_INLINE bool all(M a) { return _mm256_movemask_ps(a.v) == 0xff; }
INVAR_INLINE F select(M m, F yes, F no) { return {_mm256_blendv_ps(no.v, yes.v, m.v)}; }

INVAR_INLINE I bits(F a) { return {_mm256_castps_si256(a.v)}; }
INVAR_INLINE F from_bits(I a) { return {_mm256_castsi256_ps(a.v)}; }
INVAR_INLINE I set1_i(int32_t x) { return {_mm256_set1_epi32(x)}; }
INVAR_INLINE I bit_and(I a, I b) { return {_mm256_and_si256(a.v, b.v)}; }
INVAR_INLINE I bit_or(I a, I b) { return {_mm256_or_si256(a.v, b.v)}; }
INVAR_INLINE I bit_xor(I a, I b) { return {_mm256_xor_si256(a.v, b.v)}; }
INVAR_INLINE I add(I a, I b) { return {_mm256_add_epi32(a.v, b.v)}; }
INVAR_INLINE I sub(I a, I b) { return {_mm256_sub_epi32(a.v, b.v)}; }
// Per lane, of its two 16-bit integers: low * low + high * high.
INVAR_INLINE I pair_products(I a, I b) { return {_mm256_madd_epi16(a.v, b.v)}; }
template <int k>
INVAR_INLINE I shift_left(I a) {
  return {_mm256_slli_epi32(a.v, k)};
}
template <int k>
INVAR_INLINE I shift_right(I a) {
  return {_mm256_srli_epi32(a.v, k)};
}
INVAR_INLINE M gt(I a, I b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))}; }
INVAR_INLINE I select(M m, I yes, I no) {
  return {_mm256_blendv_epi8(no.v, yes.v, _mm256_castps_si256(m.v))};
}

INVAR_INLINE H load_h(const uint16_t* p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))}; }
INVAR_INLINE void store_h(uint16_t* p, H a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a.v); }
INVAR_INLINE H load_h_n(const uint16_t* p, int n) {
  alignas(16) uint16_t t[8] = {};
  for (int i = 0; i < n && i < 8; ++i) t[i] = p[i];
  return load_h(t);
}
INVAR_INLINE void store_h_n(uint16_t* p, H a, int n) {
  alignas(16) uint16_t t[8];
  store_h(t, a);
  for (int i = 0; i < n && i < 8; ++i) p[i] = t[i];
}
INVAR_INLINE I widen_u16(H a) { return {_mm256_cvtepu16_epi32(a.v)}; }
INVAR_INLINE H narrow_u16(I a) {
  return {_mm_packus_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1))};
}
// Bytes, to and from 32-bit integers 0 ... 255, and integers to floats, rounded to nearest even.
INVAR_INLINE I load_u8(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
INVAR_INLINE I load_u8_n(const uint8_t* p, int n) {
  alignas(8) uint8_t t[8] = {};
  for (int i = 0; i < n && i < 8; ++i) t[i] = p[i];
  return load_u8(t);
}
INVAR_INLINE void store_u8(uint8_t* p, I a) {
  __m128i h = narrow_u16(a).v;
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(h, h));
}
INVAR_INLINE F to_float(I a) { return {_mm256_cvtepi32_ps(a.v)}; }
INVAR_INLINE F widen_f16(H a) { return {_mm256_cvtph_ps(a.v)}; }
INVAR_INLINE H narrow_f16(F a) {
  return {_mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

INVAR_INLINE D set1_d(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
INVAR_INLINE D to_double(F a) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.v)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))};
}
INVAR_INLINE F to_float(D a) { return {_mm256_set_m128(_mm256_cvtpd_ps(a.hi), _mm256_cvtpd_ps(a.lo))}; }
INVAR_INLINE D add(D a, D b) { return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)}; }
INVAR_INLINE D sub(D a, D b) { return {_mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi)}; }
INVAR_INLINE D mul(D a, D b) { return {_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)}; }
INVAR_INLINE D fma(D a, D b, D c) {
  return {_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
}
// x clamped to [lo, hi]; NaN stays NaN (max and min return their second operand if one is NaN).
INVAR_INLINE D clamp(D a, double lo, double hi) {
  __m256d l = _mm256_set1_pd(lo), h = _mm256_set1_pd(hi);
  return {_mm256_min_pd(h, _mm256_max_pd(l, a.lo)), _mm256_min_pd(h, _mm256_max_pd(l, a.hi))};
}
// a * 2^n, where the low 12 bits of t hold n in two's complement and the result is a normal number.
INVAR_INLINE D scale_by_low_bits(D a, D t) {
  __m256i lo = _mm256_slli_epi64(_mm256_castpd_si256(t.lo), 52),
          hi = _mm256_slli_epi64(_mm256_castpd_si256(t.hi), 52);
  return {_mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a.lo), lo)),
          _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a.hi), hi))};
}

// Binary64 lanes: comparisons false on NaN, blends, bits as 64-bit integers.
INVAR_INLINE D div(D a, D b) { return {_mm256_div_pd(a.lo, b.lo), _mm256_div_pd(a.hi, b.hi)}; }
INVAR_INLINE D sqrt(D a) { return {_mm256_sqrt_pd(a.lo), _mm256_sqrt_pd(a.hi)}; }
INVAR_INLINE MD lt(D a, D b) {
  return {_mm256_cmp_pd(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_pd(a.hi, b.hi, _CMP_LT_OQ)};
}
INVAR_INLINE D select(MD m, D yes, D no) {
  return {_mm256_blendv_pd(no.lo, yes.lo, m.lo), _mm256_blendv_pd(no.hi, yes.hi, m.hi)};
}
INVAR_INLINE L bits(D a) { return {_mm256_castpd_si256(a.lo), _mm256_castpd_si256(a.hi)}; }
INVAR_INLINE D from_bits(L a) { return {_mm256_castsi256_pd(a.lo), _mm256_castsi256_pd(a.hi)}; }
INVAR_INLINE L set1_l(int64_t x) { return {_mm256_set1_epi64x(x), _mm256_set1_epi64x(x)}; }
INVAR_INLINE L bit_and(L a, L b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
INVAR_INLINE L bit_or(L a, L b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
INVAR_INLINE L bit_xor(L a, L b) { return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)}; }
INVAR_INLINE L add(L a, L b) { return {_mm256_add_epi64(a.lo, b.lo), _mm256_add_epi64(a.hi, b.hi)}; }
INVAR_INLINE L sub(L a, L b) { return {_mm256_sub_epi64(a.lo, b.lo), _mm256_sub_epi64(a.hi, b.hi)}; }
template <int k>
INVAR_INLINE L shift_left(L a) {
  return {_mm256_slli_epi64(a.lo, k), _mm256_slli_epi64(a.hi, k)};
}
template <int k>
INVAR_INLINE L shift_right(L a) {
  return {_mm256_srli_epi64(a.lo, k), _mm256_srli_epi64(a.hi, k)};
}
// The lanes of a mask, of 32-bit integers, and the low 32 bits of each 64-bit lane.
INVAR_INLINE MD widen(M m) {
  __m256i i = _mm256_castps_si256(m.v);
  return {_mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(i))),
          _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm256_extracti128_si256(i, 1)))};
}
INVAR_INLINE D to_double(I a) {
  return {_mm256_cvtepi32_pd(_mm256_castsi256_si128(a.v)), _mm256_cvtepi32_pd(_mm256_extracti128_si256(a.v, 1))};
}
INVAR_INLINE I low_bits(D a) {
  __m256 even = _mm256_shuffle_ps(_mm256_castpd_ps(a.lo), _mm256_castpd_ps(a.hi), 0x88);
  return {_mm256_permute4x64_epi64(_mm256_castps_si256(even), 0xd8)};
}
// table[i] per lane, 0 <= i.
INVAR_INLINE D lookup(const double* table, I i) {
  return {_mm256_i32gather_pd(table, _mm256_castsi256_si128(i.v), 8),
          _mm256_i32gather_pd(table, _mm256_extracti128_si256(i.v, 1), 8)};
}

// The four numbers of table row i per lane, loaded from memory, 0 <= i.
constexpr bool kHasTableRows = true;
struct TableRow { F f, f_low, g, g_low; };
INVAR_INLINE TableRow load_table_row(const float (*table)[4], I i) {
  alignas(32) uint32_t at[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), i.v);
  asm("" : "+m"(at));  // by way of memory: single lanes taken out of a register cost the ports that all else here needs
  __m256 r[4];
  for (int j = 0; j < 4; ++j)
    r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(table[at[j]])), _mm_load_ps(table[at[j + 4]]), 1);
  __m256 p = _mm256_unpacklo_ps(r[0], r[1]), q = _mm256_unpacklo_ps(r[2], r[3]);
  __m256 s = _mm256_unpackhi_ps(r[0], r[1]), t = _mm256_unpackhi_ps(r[2], r[3]);
  return {{_mm256_shuffle_ps(p, q, 0x44)}, {_mm256_shuffle_ps(p, q, 0xee)}, {_mm256_shuffle_ps(s, t, 0x44)}, {_mm256_shuffle_ps(s, t, 0xee)}};
}

// table[i % kTable] per lane, from registers; kTable is 1 if the instruction set has no such
// lookup.
constexpr int kTable = 8;
INVAR_INLINE F pick(const float* table, I i) { return {_mm256_permutevar8x32_ps(_mm256_load_ps(table), i.v)}; }

// Truncated and saturated to the integer type; NaN -> 0 (spec/formats.md formats.9).
INVAR_INLINE I truncate(F a) {  // the instruction gives INT32_MIN for what does not fit
  __m256i r = _mm256_cvttps_epi32(a.v);
  __m256i high = _mm256_castps_si256(_mm256_cmp_ps(a.v, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ));  // INT32_MIN -> INT32_MAX
  __m256i number = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_ORD_Q));
  return {_mm256_and_si256(_mm256_xor_si256(r, high), number)};
}
// Shifts the significand m = 2^23 ... 2^24 - 1 of each number m * 2^left; shifts by 64 or more, and
// negative ones, give 0.
INVAR_INLINE __m256i truncate_half(__m128i u) {
  __m128i mag = _mm_and_si128(u, _mm_set1_epi32(0x7fffffff));
  __m128i m = _mm_or_si128(_mm_and_si128(u, _mm_set1_epi32(0x7fffff)), _mm_set1_epi32(0x800000));
  __m128i left = _mm_sub_epi32(_mm_srli_epi32(mag, 23), _mm_set1_epi32(127 + 23));
  __m256i wide = _mm256_cvtepu32_epi64(m), sign = _mm256_cvtepi32_epi64(_mm_srai_epi32(u, 31));
  __m256i r = _mm256_or_si256(
      _mm256_sllv_epi64(wide, _mm256_cvtepi32_epi64(left)),
      _mm256_srlv_epi64(wide, _mm256_cvtepi32_epi64(_mm_sub_epi32(_mm_setzero_si128(), left))));
  r = _mm256_sub_epi64(_mm256_xor_si256(r, sign), sign);
  __m256i limit = _mm256_xor_si256(_mm256_set1_epi64x(INT64_MAX), sign);
  __m128i large = _mm_cmpgt_epi32(mag, _mm_set1_epi32(0x5effffff));  // 2^63 or more
  __m128i nan = _mm_cmpgt_epi32(mag, _mm_set1_epi32(0x7f800000));
  r = _mm256_blendv_epi8(r, limit, _mm256_cvtepi32_epi64(large));
  return _mm256_andnot_si256(_mm256_cvtepi32_epi64(nan), r);
}
INVAR_INLINE L truncate_wide(F a) {
  __m256i r = _mm256_cvttps_epi32(a.v);  // nearly always all that is needed
  if (_mm256_testz_si256(_mm256_cmpeq_epi32(r, _mm256_set1_epi32(INT32_MIN)), _mm256_set1_epi32(-1)))
    return {_mm256_cvtepi32_epi64(_mm256_castsi256_si128(r)), _mm256_cvtepi32_epi64(_mm256_extracti128_si256(r, 1))};
  __m256i u = _mm256_castps_si256(a.v);
  return {truncate_half(_mm256_castsi256_si128(u)), truncate_half(_mm256_extracti128_si256(u, 1))};
}
INVAR_INLINE void store_i(int32_t* p, I a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
INVAR_INLINE void store_l(int64_t* p, L a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 4), a.hi);
}
INVAR_INLINE L load_l(const int64_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 4))};
}
// Four vectors as bytes, each integer saturated to the range of the type.
INVAR_INLINE __m256i in_order(__m256i packed) {
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
INVAR_INLINE void store_limited(int8_t* p, const I (&a)[4]) {
  __m256i r = _mm256_packs_epi16(_mm256_packs_epi32(a[0].v, a[1].v), _mm256_packs_epi32(a[2].v, a[3].v));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), in_order(r));
}
INVAR_INLINE void store_limited(uint8_t* p, const I (&a)[4]) {
  __m256i r = _mm256_packus_epi16(_mm256_packs_epi32(a[0].v, a[1].v), _mm256_packs_epi32(a[2].v, a[3].v));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), in_order(r));
}
// Integers to floats, rounded once: through binary64, which holds all below 2^51 in magnitude. In
// larger ones the low 12 bits, far below half of a float's last place, only matter as sticky bits:
// bit 11 is set for them.
INVAR_INLINE __m128 round_half(__m256i x) {
  __m256i low = _mm256_set1_epi64x(0xfff), rest = _mm256_and_si256(x, low);
  __m256i moved = _mm256_add_epi64(x, _mm256_set1_epi64x(int64_t{1} << 51));
  __m256i keep = _mm256_or_si256(_mm256_cmpeq_epi64(rest, _mm256_setzero_si256()),
                                 _mm256_cmpeq_epi64(_mm256_srli_epi64(moved, 52), _mm256_setzero_si256()));
  __m256i joined = _mm256_or_si256(_mm256_andnot_si256(low, x), _mm256_set1_epi64x(0x800));
  x = _mm256_blendv_epi8(joined, x, keep);
  // The high half on 3 * 2^67, the low one on 2^52: their sum less both is exact.
  __m256i high = _mm256_blend_epi16(_mm256_srai_epi32(x, 16), _mm256_setzero_si256(), 0x33);
  high = _mm256_add_epi64(high, _mm256_castpd_si256(_mm256_set1_pd(0x3p67)));
  __m256d bottom = _mm256_castsi256_pd(
      _mm256_blend_epi16(x, _mm256_castpd_si256(_mm256_set1_pd(0x1p52)), 0x88));
  __m256d top = _mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x3p67 + 0x1p52));
  return _mm256_cvtpd_ps(_mm256_add_pd(top, bottom));
}
INVAR_INLINE F to_float(L a) { return {_mm256_set_m128(round_half(a.hi), round_half(a.lo))}; }

// The lanes joined by halving strides 4, 2, 1: lane j += lane j + stride (spec/reduction.md
// reduction.4).
INVAR_INLINE float join_add(F a) {
  __m128 r = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  r = _mm_add_ps(r, _mm_movehl_ps(r, r));
  return _mm_cvtss_f32(_mm_add_ss(r, _mm_movehdup_ps(r)));
}
INVAR_INLINE float first(F a) { return _mm256_cvtss_f32(a.v); }

// r[i] lane j <-> r[j] lane i.
INVAR_INLINE void transpose(F (&r)[kW]) {
  __m256 t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i].v, r[i + 1].v);
    t[i + 1] = _mm256_unpackhi_ps(r[i].v, r[i + 1].v);
  }
  for (int i = 0; i < 8; i += 4)
    for (int h = 0; h < 2; ++h) {
      u[i + 2 * h] = _mm256_shuffle_ps(t[i + h], t[i + h + 2], 0x44);
      u[i + 2 * h + 1] = _mm256_shuffle_ps(t[i + h], t[i + h + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    r[i].v = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4].v = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

}  // namespace invar::num::INVAR_ISA_NS
