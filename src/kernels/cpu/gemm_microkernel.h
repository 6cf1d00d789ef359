// The GEMM micro-kernel under matmul, convolution and attention: an MR x NV register tile, MR rows
// of A times NV vectors of columns of B, as FMA chains over k. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The tile shape that fits the register file: accumulators, a vector of B and a broadcast of A.
constexpr int kAccumulators = kW == 16 || kW == 4 ? 24 : 12;  // of 32 registers, or of 16
constexpr int kMaxRows = kW == 16 ? 12 : kW == 1 ? 2 : 6;

// Vectors of columns (NV) of a tile of `rows` rows, at most `limit`: the largest power of two that
// fits the registers.
constexpr int tile_vectors(int rows, int limit) {
  int v = rows == 1 ? 8 : 4;
  while (v > limit || v * rows > kAccumulators) v /= 2;
  return v;
}

// f(TileRows<rows>{}), 1 <= rows <= kMaxRows: dispatches the row count MR as a constant.
template <int N>
struct TileRows {
  static constexpr int value = N;
};
template <int MR = kMaxRows, class Fn>
INVAR_INLINE void dispatch_tile_rows(int rows, Fn f) {
  if constexpr (MR > 1) {
    if (rows < MR) return dispatch_tile_rows<MR - 1>(rows, f);
  }
  f(TileRows<MR>{});
}

// From this many rows on a tile prefetches B. A tile of fewer reads it faster than that: the
// hardware follows the stream by itself, and prefetches of the same lines halve its rate (Zen 4).
constexpr int kPrefetchTileRows = 5;

// The B operand of one tile. Rows of k are `row` elements apart; vectors of columns are in panels
// of kVectorsPerPanel vectors, `panel` elements apart. kAhead: prefetch distance in bytes, 0 if B
// is in cache. kStep: `row` if known at compile time, else 0.
template <class W, int kVectorsPerPanel, int kAhead = 0, int kStep = 0>
struct PanelsOfB {
  static constexpr int kRows = kMaxRows, kMaxVectors = 8;  // of a tile: rows, and vectors of columns at most
  static constexpr bool kUnpackedA = false;
  const typename W::T* data;
  int64_t row, panel;
  INVAR_INLINE PanelsOfB skip(const PanelsOfB& c, int64_t v) {  // from vector v on
    return {c.data + v / kVectorsPerPanel * c.panel + v % kVectorsPerPanel * kW, c.row, c.panel};
  }
  INVAR_INLINE const typename W::T* at(const PanelsOfB& c, int64_t k, int v) {
    return c.data + k * (kStep ? kStep : c.row) + v / kVectorsPerPanel * c.panel + v % kVectorsPerPanel * kW;
  }
};

// x[v] = vector v of the columns, at place(v). Formats that come in pairs of vectors have get2.
template <int NV, class W, class Place>
INVAR_INLINE void load_vectors(W, F (&x)[NV], Place place) {
#pragma GCC unroll 32
  for (int v = 0; v < NV; ++v) {
    if constexpr (requires(F & f) { W::get2(place(0), f, f); }) {
      if (v % 2 == 0) W::get2(place(v), x[v], x[v + 1]);
    } else {
      x[v] = W::get(place(v));
    }
  }
}

// The A operand of one tile: rows `ld` elements apart, or one pointer per row.
struct StridedRows {
  const float* data;
  int64_t ld;
  INVAR_INLINE float at(const StridedRows& a, int r, int64_t k) { return a.data[r * a.ld + k]; }
};
template <int MR>
struct RowPointers {
  const float* row[MR];
  INVAR_INLINE float at(const RowPointers& a, int r, int64_t k) { return a.row[r][k]; }
};

// Continues the FMA chains c[r * NV + v] over k in [begin, end): c = fma(a(r, k), b(k, v), c).
template <int MR, int NV, class A, class W, int kVectorsPerPanel, int kAhead, int kStep>
INVAR_INLINE void microkernel_accumulate(const A& a, PanelsOfB<W, kVectorsPerPanel, kAhead, kStep> b,
                                         int64_t begin, int64_t end, F (&c)[MR * NV]) {
  F acc[MR * NV];
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) acc[i] = c[i];
  auto step = [&](int64_t k) __attribute__((always_inline)) {
    if constexpr (kAhead > 0 && MR >= kPrefetchTileRows) {
#pragma GCC unroll 32
      for (int i = 0; i < NV * kW * static_cast<int>(sizeof(typename W::T)); i += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(b.at(b, k, 0)) + kAhead + i);
    }
    // A single row uses each vector of B once: if more were loaded than registers are left, they
    // would spill.
    constexpr int kTaken = MR == 1 && NV > 2 ? 2 : NV;
#pragma GCC unroll 32
    for (int first = 0; first < NV; first += kTaken) {
      F w[kTaken];
      load_vectors<kTaken>(
          W{}, w, [&](int v) __attribute__((always_inline)) { return b.at(b, k, first + v); });
#pragma GCC unroll 32
      for (int v = 0; v < kTaken && MR > 1; ++v) w[v] = in_register(w[v]);
#pragma GCC unroll 32
      for (int r = 0; r < MR; ++r) {
        F x = set1(a.at(a, r, k));
#pragma GCC unroll 32
        for (int v = 0; v < kTaken; ++v)  // contraction.2
          acc[r * NV + first + v] = fma(x, w[v], acc[r * NV + first + v]);
      }
    }
  };
  int64_t k = begin;
  if constexpr (MR == 1)  // little work per k: unroll by four
    for (; k + 4 <= end; k += 4) step(k), step(k + 1), step(k + 2), step(k + 3);
  for (; k < end; ++k) step(k);
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) c[i] = acc[i];
}

template <int MR, int NV, class W, int kVectorsPerPanel, int kAhead, int kStep>
INVAR_INLINE void microkernel_accumulate(const float* a, int64_t lda,
                                         PanelsOfB<W, kVectorsPerPanel, kAhead, kStep> b, int64_t begin,
                                         int64_t end, F (&c)[MR * NV]) {
  microkernel_accumulate<MR, NV>(StridedRows{a, lda}, b, begin, end, c);
}

// The micro-kernel from zero: chains start at +0.
template <int MR, int NV, class W, int kVectorsPerPanel, int kAhead, int kStep>
INVAR_INLINE void microkernel(const float* a, int64_t lda, PanelsOfB<W, kVectorsPerPanel, kAhead, kStep> b,
                              int64_t begin, int64_t end, F (&c)[MR * NV]) {
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) c[i] = zero();
  microkernel_accumulate<MR, NV>(a, lda, b, begin, end, c);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
