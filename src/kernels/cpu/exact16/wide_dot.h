// Products of many rows by NEON's products of four bytes.
// Included by wide_neon.h only.
#pragma once
#include <cstdint>

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kWideQuads = 1;  // whose bytes of a column lie side by side

// A row of A: of each quad of k the high bytes and the low bytes.
struct WideRow {
  int64_t quads;
  explicit WideRow(int64_t k) : quads((k + 3) / 4) {}
  int64_t words() const { return 2 * quads; }
};

// Writes n <= kWideStep integers of a row, a step from `begin` on; those up to a quad are 0.
INVAR_INLINE void write_wide_row(const int32_t* q, int64_t begin, int64_t n, const WideRow&, int32_t* row) {
  for (int64_t i = 0; i < n; i += 4) {
    int32_t* const to = row + (begin + i) / 2;
    to[0] = quad_of((q[i] + 128) >> 8, (q[i + 1] + 128) >> 8, (q[i + 2] + 128) >> 8, (q[i + 3] + 128) >> 8);
    to[1] = quad_of(q[i], q[i + 1], q[i + 2], q[i + 3]);
  }
}

// The planes of quads of k of a panel, as quad_of() orders them: the high bytes of its columns,
// then the low ones. `rows` of the panel's pairs exist.
INVAR_INLINE void byte_planes(const int32_t* panel, int64_t rows, int64_t quads, int32_t* to) {
  for (int64_t i = 0; i < quads; ++i, panel += 2 * kExactColumns, to += 2 * kExactColumns)
    for (int j = 0; j < kExactColumns; j += kW) {
      const I first = load_i(panel + j);
      const I second = 2 * i + 1 < rows ? load_i(panel + kExactColumns + j) : set1_i(0);
      store_i(to + j, high_quad(first, second));
      store_i(to + kExactColumns + j, low_quad(first, second));
    }
}

// Assembly in this order: GCC would move operands ahead until it keeps sums in memory.
INVAR_INLINE I add_quad_products(I sum, I a, I b) {
  __asm__ volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum.v) : "w"(a.v), "w"(b.v));
  return sum;
}

template <int R>
INVAR_INLINE void wide_tile(const int32_t* a, int64_t lda, const int32_t* b, int64_t quads, const WideSums& s,
                            int64_t at) {
  constexpr int kResults = R * kWideVectors;
  I high[kResults], both[kResults], low[kResults];
#pragma GCC unroll 32
  for (int i = 0; i < kResults; ++i) high[i] = both[i] = low[i] = set1_i(0);
  for (int64_t k = 0; k < quads; ++k, a += 2, b += 2 * kExactColumns) {
    I h[kWideVectors], l[kWideVectors];
#pragma GCC unroll 32
    for (int v = 0; v < kWideVectors; ++v)
      h[v] = load_i(b + v * kW), l[v] = load_i(b + kExactColumns + v * kW);
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
      const I x = set1_i(a[r * lda]), y = set1_i(a[r * lda + 1]);
#pragma GCC unroll 32
      for (int v = 0; v < kWideVectors; ++v) {
        const int i = r * kWideVectors + v;
        high[i] = add_quad_products(high[i], x, h[v]);
        both[i] = add_quad_products(both[i], x, l[v]);
        low[i] = add_quad_products(low[i], y, l[v]);
        both[i] = add_quad_products(both[i], y, h[v]);
      }
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < kResults; ++i) {
    const int64_t to = at + i / kWideVectors * kExactColumns + i % kWideVectors * kW;
    add_planes(s, to, high[i], both[i], low[i]);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
