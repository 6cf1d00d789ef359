// Sums of exact16 products with A as two planes of bytes and B whole, both as pairs of int16 along
// k: one instruction, or two, multiplies and adds two k. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/exact16/layout.h"
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/pair_sums.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Pairs of k whose sums stay below 2^31: 2 * 32639 * 128 each.
constexpr int64_t kExactPairs = 256;
// Two vectors of B, the sums of both planes of each row, and an operand fill the registers.
// A single row takes all of a panel.
constexpr int kExactVectors = 2, kExactRowVectors = kW == 1 ? 2 : kExactColumns / kW;
constexpr int64_t kAhead = 1024;  // int32 that a single row prefetches ahead
constexpr int kExactTileRows = kW == 16 || kW == 4 ? 6 : kW == 1 ? 2 : 3;

#if INVAR_EXTENSION_AVX512_VNNI || INVAR_EXTENSION_AVX512_AMX || INVAR_EXTENSION_AVX2_VNNI
// sum + the products of four bytes each, in assembly for the same reason.
INVAR_INLINE I add_quad_products(I sum, I unsigned_bytes, I signed_bytes) {
  __asm__ volatile(INVAR_VEX "vpdpbusd %2, %1, %0"
                   : "+v"(sum.v)
                   : "v"(unsigned_bytes.v), "v"(signed_bytes.v));
  return sum;
}
#endif

// Adds 256 high + low of R rows and V vectors over `pairs` pairs to the exact sums at `sum`, rows
// kExactColumns apart. `plane`: from the high plane of a row to the low one.
template <int R, int V>
INVAR_INLINE void exact_tile(const int32_t* a, int64_t lda, int64_t plane, const int32_t* b, int64_t pairs,
                             double* sum) {
  I high[R * V], low[R * V];
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) high[i] = low[i] = set1_i(0);
  for (int64_t k = 0; k < pairs; ++k) {
    if constexpr (R == 1) {  // few rows wait for memory
#pragma GCC unroll 4
      for (int i = 0; i < V * kW; i += 16) __builtin_prefetch(b + k * kExactColumns + kAhead + i);
    }
    I w[V];
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) w[v] = load_i(b + k * kExactColumns + v * kW);
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
      add_row_products(high + r * V, a[r * lda + k], w);
      add_row_products(low + r * V, a[r * lda + plane + k], w);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) {
    double* const at = sum + i / V * kExactColumns + i % V * kW;
    const D both = fma(to_double(high[i]), set1_d(256), to_double(low[i]));
    store_d(at, add(load_d(at), both));
  }
}

// Writes n integers of a row, k from `begin` on, as planes of pairs; those up to a pair are 0, and
// up to kW may be read.
INVAR_INLINE void write_exact_planes(const int32_t* q, int64_t begin, int64_t n, int64_t plane,
                                     int32_t* row) {
  if constexpr (kW == 1) {
    for (int64_t i = 0; i < n; i += 2) {
      const int32_t h0 = (q[i] + 128) >> 8, h1 = (q[i + 1] + 128) >> 8;
      row[(begin + i) / 2] = pair_of(h0, h1);
      row[plane + (begin + i) / 2] = pair_of(q[i] - h0 * 256, q[i + 1] - h1 * 256);
    }
    return;
  }
  for (int64_t i = 0; i < n; i += kW) {
    const I x = load_i(q + i), high = high_part(x);
    const int64_t left = (n - i + 1) / 2 * 2;
    store_halves(row, begin + i, high, left);
    store_halves(row + plane, begin + i, sub(x, shift_left<8>(high)), left);
  }
}

// sum[r * kExactColumns + c] = the exact sums over `all` > 0 pairs of rows of A at `left`, lda
// apart, and one panel.
void sum_exact_pairs(const int32_t* left, int64_t lda, int64_t plane, const int32_t* panel, int64_t all,
                     int64_t rows, int64_t columns, double* sum) {
  for (int64_t i = 0; i < rows * kExactColumns; ++i) sum[i] = 0;
  for (int64_t first = 0; first < all; first += kExactPairs) {
    const int64_t pairs = num::min_i64(kExactPairs, all - first);
    for (int64_t r = 0; r < rows; r += kExactTileRows) {
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        constexpr int kRows = decltype(tall)::value, kV = kRows == 1 ? kExactRowVectors : kExactVectors;
        for (int64_t c = 0; c < columns; c += kV * kW)
          exact_tile<kRows, kV>(left + r * lda + first, lda, plane, panel + first * kExactColumns + c, pairs,
                                sum + r * kExactColumns + c);
      };
      dispatch_tile_rows<kExactTileRows>(static_cast<int>(num::min_i64(kExactTileRows, rows - r)), tiles);
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
