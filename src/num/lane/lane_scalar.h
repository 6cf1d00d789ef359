// One lane in plain C++: the reference's own arithmetic and the kernels of any processor without a
// lane file. __builtin_fma is the FMA instruction where the target has it (the scalar row of x86 is
// built with -mfma), else the C library's exact fma. Never a multiply and an add.
#pragma once

#include <cstdint>

#include "num/convert/convert.h"

// One operation, one line.
// clang-format off
namespace invar::num::INVAR_ISA_NS {

constexpr int kW = 1;
struct F { float v; };
struct D { double v; };
struct I { int32_t v; };
struct L { int64_t v; };
struct MD { bool v; };
struct H { uint16_t v; };
struct M { bool v; };

INVAR_INLINE F zero() { return {0.0f}; }
INVAR_INLINE F set1(float x) { return {x}; }
INVAR_INLINE F load(const float* p) { return {*p}; }
INVAR_INLINE void store(float* p, F a) { *p = a.v; }
INVAR_INLINE F load_n(const float* p, int n) { return {n > 0 ? *p : 0.0f}; }
INVAR_INLINE void store_n(float* p, F a, int n) {
  if (n > 0) *p = a.v;
}

INVAR_INLINE F add(F a, F b) { return {a.v + b.v}; }
INVAR_INLINE F sub(F a, F b) { return {a.v - b.v}; }
INVAR_INLINE F mul(F a, F b) { return {a.v * b.v}; }
INVAR_INLINE F div(F a, F b) { return {a.v / b.v}; }
INVAR_INLINE F sqrt(F a) { return {__builtin_sqrtf(a.v)}; }
INVAR_INLINE F fma(F a, F b, F c) { return {__builtin_fmaf(a.v, b.v, c.v)}; }
INVAR_INLINE F floor(F a) { return {__builtin_floorf(a.v)}; }
INVAR_INLINE F trunc(F a) { return {__builtin_truncf(a.v)}; }
INVAR_INLINE F round_even(F a) { return {__builtin_rintf(a.v)}; }
// The larger and the smaller of two numbers; of equal ones, and if a is NaN, either; NaN if b is.
INVAR_INLINE F larger(F a, F b) { return {a.v > b.v ? a.v : b.v}; }
INVAR_INLINE F smaller(F a, F b) { return {a.v < b.v ? a.v : b.v}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE F clamp(F a, float lo, float hi) {
  float x = a.v < lo ? lo : a.v;
  return {x > hi ? hi : x};
}

INVAR_INLINE M lt(F a, F b) { return {a.v < b.v}; }
INVAR_INLINE M eq(F a, F b) { return {a.v == b.v}; }
INVAR_INLINE M unordered(F a, F b) { return {a.v != a.v || b.v != b.v}; }
INVAR_INLINE M both(M a, M b) { return {a.v && b.v}; }
INVAR_INLINE M either(M a, M b) { return {a.v || b.v}; }
INVAR_INLINE bool any(M a) { return a.v; }
INVAR_INLINE bool all(M a) { return a.v; }
INVAR_INLINE F select(M m, F yes, F no) { return {m.v ? yes.v : no.v}; }

INVAR_INLINE I bits(F a) { return {__builtin_bit_cast(int32_t, a.v)}; }
INVAR_INLINE F from_bits(I a) { return {__builtin_bit_cast(float, a.v)}; }
INVAR_INLINE I set1_i(int32_t x) { return {x}; }
INVAR_INLINE I bit_and(I a, I b) { return {a.v & b.v}; }
INVAR_INLINE I bit_or(I a, I b) { return {a.v | b.v}; }
INVAR_INLINE I bit_xor(I a, I b) { return {a.v ^ b.v}; }
INVAR_INLINE I add(I a, I b) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) + static_cast<uint32_t>(b.v))};
}
INVAR_INLINE I sub(I a, I b) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) - static_cast<uint32_t>(b.v))};
}
// Per lane, of its two 16-bit integers: low * low + high * high.
INVAR_INLINE I pair_products(I a, I b) {
  return {static_cast<int16_t>(a.v & 0xffff) * static_cast<int16_t>(b.v & 0xffff) + (a.v >> 16) * (b.v >> 16)};
}
template <int k>
INVAR_INLINE I shift_left(I a) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) << k)};
}
template <int k>
INVAR_INLINE I shift_right(I a) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) >> k)};
}
INVAR_INLINE M gt(I a, I b) { return {a.v > b.v}; }
INVAR_INLINE I select(M m, I yes, I no) { return {m.v ? yes.v : no.v}; }

INVAR_INLINE H load_h(const uint16_t* p) { return {*p}; }
INVAR_INLINE H load_h_n(const uint16_t* p, int n) { return {n > 0 ? *p : uint16_t{0}}; }
INVAR_INLINE void store_h(uint16_t* p, H a) { *p = a.v; }
INVAR_INLINE void store_h_n(uint16_t* p, H a, int n) {
  if (n > 0) *p = a.v;
}
INVAR_INLINE I widen_u16(H a) { return {a.v}; }
INVAR_INLINE H narrow_u16(I a) { return {static_cast<uint16_t>(a.v)}; }
// Bytes, to and from 32-bit integers 0 ... 255, and integers to floats, rounded to nearest even.
INVAR_INLINE I load_u8(const uint8_t* p) { return {*p}; }
INVAR_INLINE I load_u8_n(const uint8_t* p, int n) { return {n > 0 ? *p : 0}; }
INVAR_INLINE void store_u8(uint8_t* p, I a) { *p = static_cast<uint8_t>(a.v); }
INVAR_INLINE F to_float(I a) { return {static_cast<float>(a.v)}; }
INVAR_INLINE F widen_f16(H a) { return {f32_from_f16(a.v)}; }
INVAR_INLINE H narrow_f16(F a) { return {f16_from_f32(a.v)}; }

INVAR_INLINE D set1_d(double x) { return {x}; }
INVAR_INLINE D to_double(F a) { return {static_cast<double>(a.v)}; }
INVAR_INLINE F to_float(D a) { return {static_cast<float>(a.v)}; }
INVAR_INLINE D add(D a, D b) { return {a.v + b.v}; }
INVAR_INLINE D sub(D a, D b) { return {a.v - b.v}; }
INVAR_INLINE D mul(D a, D b) { return {a.v * b.v}; }
INVAR_INLINE D fma(D a, D b, D c) { return {__builtin_fma(a.v, b.v, c.v)}; }
// x limited to [lo, hi]; NaN stays NaN.
INVAR_INLINE D clamp(D a, double lo, double hi) {
  double x = a.v < lo ? lo : a.v;
  return {x > hi ? hi : x};
}
// a * 2^n, where the low 12 bits of t hold n in two's complement and the result is a normal number.
INVAR_INLINE D scale_by_low_bits(D a, D t) {
  uint64_t u = __builtin_bit_cast(uint64_t, a.v) + (__builtin_bit_cast(uint64_t, t.v) << 52);
  return {__builtin_bit_cast(double, u)};
}

// Binary64 lanes: comparisons false on NaN, blends, bits as 64-bit integers.
INVAR_INLINE D div(D a, D b) { return {a.v / b.v}; }
INVAR_INLINE D sqrt(D a) { return {__builtin_sqrt(a.v)}; }
INVAR_INLINE MD lt(D a, D b) { return {a.v < b.v}; }
INVAR_INLINE D select(MD m, D yes, D no) { return {m.v ? yes.v : no.v}; }
INVAR_INLINE L bits(D a) { return {__builtin_bit_cast(int64_t, a.v)}; }
INVAR_INLINE D from_bits(L a) { return {__builtin_bit_cast(double, a.v)}; }
INVAR_INLINE L set1_l(int64_t x) { return {x}; }
INVAR_INLINE L bit_and(L a, L b) { return {a.v & b.v}; }
INVAR_INLINE L bit_or(L a, L b) { return {a.v | b.v}; }
INVAR_INLINE L bit_xor(L a, L b) { return {a.v ^ b.v}; }
INVAR_INLINE L add(L a, L b) {
  return {static_cast<int64_t>(static_cast<uint64_t>(a.v) + static_cast<uint64_t>(b.v))};
}
INVAR_INLINE L sub(L a, L b) {
  return {static_cast<int64_t>(static_cast<uint64_t>(a.v) - static_cast<uint64_t>(b.v))};
}
template <int k>
INVAR_INLINE L shift_left(L a) {
  return {static_cast<int64_t>(static_cast<uint64_t>(a.v) << k)};
}
template <int k>
INVAR_INLINE L shift_right(L a) {
  return {static_cast<int64_t>(static_cast<uint64_t>(a.v) >> k)};
}
// The lanes of a mask, of 32-bit integers, and the low 32 bits of each 64-bit lane.
INVAR_INLINE MD widen(M m) { return {m.v}; }
INVAR_INLINE D to_double(I a) { return {static_cast<double>(a.v)}; }
INVAR_INLINE I low_bits(D a) { return {static_cast<int32_t>(__builtin_bit_cast(int64_t, a.v))}; }
// table[i] per lane, 0 <= i.
INVAR_INLINE D lookup(const double* table, I i) { return {table[i.v]}; }

// load_table_row: the four numbers of table row i, 0 <= i. pick: table[i % kTable]. Both per lane.
// kHasTableRows: whether table rows are faster here than binary64; kTable is 1 if a table is not.
// Both are faster on a GPU, most on one with few binary64 units: one access to the L1 cache reads
// for all lanes of a warp, and the table of pick is one cache line.
struct TableRow { F f, f_low, g, g_low; };
#ifdef __CUDACC__
constexpr bool kHasTableRows = true;
constexpr int kTable = 32;
INVAR_INLINE TableRow load_table_row(const float (*table)[4], I i) {
  struct alignas(16) Four { float f, f_low, g, g_low; };
  const Four r = *reinterpret_cast<const Four*>(table[i.v]);
  return {{r.f}, {r.f_low}, {r.g}, {r.g_low}};
}
#else
constexpr bool kHasTableRows = false;
constexpr int kTable = 1;
INVAR_INLINE TableRow load_table_row(const float (*table)[4], I i) {
  const float* r = table[i.v];
  return {{r[0]}, {r[1]}, {r[2]}, {r[3]}};
}
#endif
INVAR_INLINE F pick(const float* table, I i) { return {table[i.v & (kTable - 1)]}; }

// Truncated and saturated to the integer type; NaN -> 0 (spec/formats.md formats.9).
INVAR_INLINE I truncate(F a) {
  if (a.v != a.v) return {0};
  return {a.v >= 0x1p31f ? INT32_MAX : a.v < -0x1p31f ? INT32_MIN : static_cast<int32_t>(a.v)};
}
INVAR_INLINE L truncate_wide(F a) {
  if (a.v != a.v) return {0};
  return {a.v >= 0x1p63f ? INT64_MAX : a.v < -0x1p63f ? INT64_MIN : static_cast<int64_t>(a.v)};
}
INVAR_INLINE void store_i(int32_t* p, I a) { *p = a.v; }
INVAR_INLINE void store_l(int64_t* p, L a) { *p = a.v; }
INVAR_INLINE L load_l(const int64_t* p) { return {*p}; }
// Four vectors as bytes, each integer saturated to the range of the type.
INVAR_INLINE void store_limited(int8_t* p, const I (&a)[4]) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<int8_t>(a[i].v < -128 ? -128 : a[i].v > 127 ? 127 : a[i].v);
}
INVAR_INLINE void store_limited(uint8_t* p, const I (&a)[4]) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<uint8_t>(a[i].v < 0 ? 0 : a[i].v > 255 ? 255 : a[i].v);
}
// Integers to floats, rounded once.
INVAR_INLINE F to_float(L a) { return {static_cast<float>(a.v)}; }

// The lanes joined by halving strides kW/2 ... 1: lane j += lane j + stride (spec/reduction.md
// reduction.4).
INVAR_INLINE float join_add(F a) { return a.v; }
INVAR_INLINE float first(F a) { return a.v; }

// r[i] lane j <-> r[j] lane i.
INVAR_INLINE void transpose(F (&)[kW]) {}

}  // namespace invar::num::INVAR_ISA_NS
