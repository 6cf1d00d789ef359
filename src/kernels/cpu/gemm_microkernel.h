// The register tile under matmul and attention: MR rows of `a` times NV vectors of columns of `b`, FMA chains over k.
// Compiled once per instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The shape that fits the registers: accumulators plus a vector of b and a broadcast of a.
constexpr int kAccumulators = kW == 16 || kW == 4 ? 24 : 12;  // of 32 registers, or of 16
constexpr int kMaxRows = kW == 16 ? 12 : kW == 1 ? 2 : 6;

// Vectors of columns of a tile of `rows` rows, at most `limit`: as many as leave room, a power of two.
constexpr int tile_vectors(int rows, int limit) {
  int v = rows == 1 ? 8 : 4;
  while (v > limit || v * rows > kAccumulators) v /= 2;
  return v;
}

// f(Rows<rows>{}), 1 <= rows <= kMaxRows: the number of rows as a constant.
template <int N>
struct Rows {
  static constexpr int value = N;
};
template <int MR = kMaxRows, class Fn>
INVAR_INLINE void with_rows(int rows, Fn f) {
  if constexpr (MR > 1) {
    if (rows < MR) return with_rows<MR - 1>(rows, f);
  }
  f(Rows<MR>{});
}

// b of one tile: rows of k lie `row` elements apart; vectors of columns lie in panels of kPer vectors, `panel` apart.
// kAhead: how many bytes before its use b is asked for; 0 where it is there already.
// kStep: `row`, where that is known; 0 where it is not.
template <class W, int kPer, int kAhead = 0, int kStep = 0>
struct Columns {
  static constexpr int kRows = kMaxRows, kWide = 8;  // of a tile: rows, and vectors of columns at most
  static constexpr bool kFew = false;
  const typename W::T* data;
  int64_t row, panel;
  INVAR_INLINE Columns skip(const Columns& c, int64_t v) {  // from vector v on
    return {c.data + v / kPer * c.panel + v % kPer * kW, c.row, c.panel};
  }
  INVAR_INLINE const typename W::T* at(const Columns& c, int64_t k, int v) {
    return c.data + k * (kStep ? kStep : c.row) + v / kPer * c.panel + v % kPer * kW;
  }
};

// x[v] = vector v of the columns, which lies at place(v); formats that come in pairs of vectors have get2.
template <int NV, class W, class Place>
INVAR_INLINE void get_all(W, F (&x)[NV], Place place) {
#pragma GCC unroll 32
  for (int v = 0; v < NV; ++v) {
    if constexpr (requires(F & f) { W::get2(place(0), f, f); }) {
      if (v % 2 == 0) W::get2(place(v), x[v], x[v + 1]);
    } else {
      x[v] = W::get(place(v));
    }
  }
}

// a of one tile: rows lie `ld` elements apart, or each at a place of its own.
struct Pitched {
  const float* data;
  int64_t ld;
  INVAR_INLINE float at(const Pitched& a, int r, int64_t k) { return a.data[r * a.ld + k]; }
};
template <int MR>
struct Apart {
  const float* row[MR];
  INVAR_INLINE float at(const Apart& a, int r, int64_t k) { return a.row[r][k]; }
};

// The chains c[r * NV + v] go on over k in [begin, end): c = fma(a(r, k), b(k, v), c).
template <int MR, int NV, class A, class W, int kPer, int kAhead, int kStep>
INVAR_INLINE void extend(const A& a, Columns<W, kPer, kAhead, kStep> b, int64_t begin, int64_t end,
                         F (&c)[MR * NV]) {
  F acc[MR * NV];
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) acc[i] = c[i];
  auto step = [&](int64_t k) __attribute__((always_inline)) {
    if constexpr (kAhead > 0) {
#pragma GCC unroll 32
      for (int i = 0; i < NV * kW * static_cast<int>(sizeof(typename W::T)); i += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(b.at(b, k, 0)) + kAhead + i);
    }
    // A single row uses a vector of b once, at once: more of them than registers are left would be kept in memory.
    constexpr int kTaken = MR == 1 && NV > 2 ? 2 : NV;
#pragma GCC unroll 32
    for (int first = 0; first < NV; first += kTaken) {
      F w[kTaken];
      get_all<kTaken>(
          W{}, w, [&](int v) __attribute__((always_inline)) { return b.at(b, k, first + v); });
#pragma GCC unroll 32
      for (int v = 0; v < kTaken && MR > 1; ++v) w[v] = held(w[v]);
#pragma GCC unroll 32
      for (int r = 0; r < MR; ++r) {
        F x = set1(a.at(a, r, k));
#pragma GCC unroll 32
        for (int v = 0; v < kTaken; ++v) acc[r * NV + first + v] = fma(x, w[v], acc[r * NV + first + v]);
      }
    }
  };
  int64_t k = begin;
  if constexpr (MR == 1)  // little is done for a k: four of them share the loop's own work
    for (; k + 4 <= end; k += 4) step(k), step(k + 1), step(k + 2), step(k + 3);
  for (; k < end; ++k) step(k);
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) c[i] = acc[i];
}

template <int MR, int NV, class W, int kPer, int kAhead, int kStep>
INVAR_INLINE void extend(const float* a, int64_t lda, Columns<W, kPer, kAhead, kStep> b, int64_t begin,
                         int64_t end, F (&c)[MR * NV]) {
  extend<MR, NV>(Pitched{a, lda}, b, begin, end, c);
}

// The same from +0.
template <int MR, int NV, class W, int kPer, int kAhead, int kStep>
INVAR_INLINE void chains(const float* a, int64_t lda, Columns<W, kPer, kAhead, kStep> b, int64_t begin,
                         int64_t end, F (&c)[MR * NV]) {
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) c[i] = zero();
  extend<MR, NV>(a, lda, b, begin, end, c);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
