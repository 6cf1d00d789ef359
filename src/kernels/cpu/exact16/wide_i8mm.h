// Products of many rows by NEON's products of matrices: two rows, two columns and eight k.
// Included by wide_neon.h only.
#pragma once
#include <cstdint>

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kWideQuads = 2;  // whose bytes of a column lie side by side

// A row of A: of each eight k the high bytes and the low bytes, as quads.
struct WideRow {
  int64_t quads;
  explicit WideRow(int64_t k) : quads((k + 7) / 8 * 2) {}
  int64_t words() const { return 2 * quads; }
};

// Writes n <= kWideStep integers of a row, a step from `begin` on; those up to a quad are 0.
INVAR_INLINE void write_wide_row(const int32_t* q, int64_t begin, int64_t n, const WideRow&, int32_t* row) {
  for (int64_t i = 0; i < (n + 7) / 8 * 8; i += 4) {
    int32_t* const to = row + (begin + i) / 8 * 4 + i / 4 % 2;
    const bool some = i < n;
    to[0] = !some ? 0
                  : quad_of((q[i] + 128) >> 8, (q[i + 1] + 128) >> 8, (q[i + 2] + 128) >> 8,
                            (q[i + 3] + 128) >> 8);
    to[2] = !some ? 0 : quad_of(q[i], q[i + 1], q[i + 2], q[i + 3]);
  }
}

// The planes of an even number of quads of k of a panel: of each eight k the high bytes of its
// columns, then the low ones, those of a column side by side. `rows` of the panel's pairs exist.
INVAR_INLINE void byte_planes(const int32_t* panel, int64_t rows, int64_t quads, int32_t* to) {
  for (int64_t i = 0; i < quads; i += 2, panel += 4 * kExactColumns, to += 4 * kExactColumns)
    for (int j = 0; j < kExactColumns; j += kW) {
      I pair[4];
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p)
        pair[p] = 2 * i + p < rows ? load_i(panel + p * kExactColumns + j) : set1_i(0);
      auto write = [&](int32_t * at, I first, I second) __attribute__((always_inline)) {
        store_i(at, {vzip1q_s32(first.v, second.v)});
        store_i(at + kW, {vzip2q_s32(first.v, second.v)});
      };
      write(to + 2 * j, high_quad(pair[0], pair[1]), high_quad(pair[2], pair[3]));
      write(to + 2 * (kExactColumns + j), low_quad(pair[0], pair[1]), low_quad(pair[2], pair[3]));
    }
}

// Adds the products of eight k of two rows and two columns: results 00, 01, 10, 11. In assembly,
// in this order: GCC would move operands ahead until it keeps sums in memory.
INVAR_INLINE I add_octet_products(I sum, int8x16_t a, int8x16_t b) {
  __asm__ volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum.v) : "w"(a), "w"(b));
  return sum;
}

template <int R>
INVAR_INLINE void wide_tile(const int32_t* a, int64_t lda, const int32_t* b, int64_t quads, const WideSums& s,
                            int64_t at) {
  constexpr int kTwo = (R + 1) / 2, kColumns = kWideVectors * kW / 2;  // pairs of rows and of columns
  I high[kTwo * kColumns], both[kTwo * kColumns], low[kTwo * kColumns];
#pragma GCC unroll 32
  for (int i = 0; i < kTwo * kColumns; ++i) high[i] = both[i] = low[i] = set1_i(0);
  for (int64_t k = 0; k < quads; k += 2, a += 4, b += 4 * kExactColumns) {
    int8x16_t x[kTwo], y[kTwo];
#pragma GCC unroll 32
    for (int r = 0; r < kTwo; ++r) {
      const int32_t *first = a + 2 * r * lda, *second = 2 * r + 1 < R ? first + lda : first;
      x[r] = vreinterpretq_s8_s32(vcombine_s32(vld1_s32(first), vld1_s32(second)));
      y[r] = vreinterpretq_s8_s32(vcombine_s32(vld1_s32(first + 2), vld1_s32(second + 2)));
    }
#pragma GCC unroll 32
    for (int c = 0; c < kColumns; ++c) {
      const int8x16_t h = vreinterpretq_s8_s32(load_i(b + c * kW).v);
      const int8x16_t l = vreinterpretq_s8_s32(load_i(b + 2 * kExactColumns + c * kW).v);
#pragma GCC unroll 32
      for (int r = 0; r < kTwo; ++r) {
        const int i = r * kColumns + c;
        high[i] = add_octet_products(high[i], x[r], h);
        both[i] = add_octet_products(both[i], x[r], l);
        low[i] = add_octet_products(low[i], y[r], l);
        both[i] = add_octet_products(both[i], y[r], h);
      }
    }
  }
  auto row = [](I first, I second, int r) __attribute__((always_inline))->I {  // of four columns
    const int64x2_t x = vreinterpretq_s64_s32(first.v), y = vreinterpretq_s64_s32(second.v);
    return {vreinterpretq_s32_s64(r ? vzip2q_s64(x, y) : vzip1q_s64(x, y))};
  };
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 32
    for (int c = 0; c < kColumns; c += 2) {
      const int i = r / 2 * kColumns + c;
      add_planes(s, at + r * kExactColumns + c * 2, row(high[i], high[i + 1], r % 2),
                 row(both[i], both[i + 1], r % 2), row(low[i], low[i + 1], r % 2));
    }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
