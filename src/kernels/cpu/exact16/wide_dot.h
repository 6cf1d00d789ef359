// Sums of exact16 products of many rows by NEON's products of four bytes: both operands as two
// planes of bytes, four products of planes in three sums. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/exact16/pair_products.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr bool kWideProducts = true;
constexpr int64_t kWideFewest = 8;  // rows of a product from which on it is wide: tuning
constexpr int64_t kWideRows = 96;   // rows of A that use the planes of one panel
constexpr int64_t kWideStep = 256;  // k whose planes of a panel stay in the L1 cache
// k whose products of two planes stay below 2^31 in sum: (2 * 127 * 128) each.
constexpr int64_t kWideLongest = 65536;
constexpr int kWideVectors = 2, kWideTileRows = 4;

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
  const I odd = set1_i(static_cast<int32_t>(0xff00ff00)), even = set1_i(0x00ff00ff);
  auto high = [](I x) __attribute__((always_inline))->I {  // plus 128, 16 bits each
    return {vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(x.v), vdupq_n_s16(128)))};
  };
  for (int64_t i = 0; i < quads; ++i, panel += 2 * kExactColumns, to += 2 * kExactColumns)
    for (int j = 0; j < kExactColumns; j += kW) {
      const I first = load_i(panel + j);
      const I second = 2 * i + 1 < rows ? load_i(panel + kExactColumns + j) : set1_i(0);
      store_i(to + j, bit_or(shift_right<8>(bit_and(high(first), odd)), bit_and(high(second), odd)));
      store_i(to + kExactColumns + j, bit_or(bit_and(first, even), shift_left<8>(bit_and(second, even))));
    }
}

INVAR_INLINE I add_quad_products(I sum, I a, I b) {
  return {vdotq_s32(sum.v, vreinterpretq_s8_s32(a.v), vreinterpretq_s8_s32(b.v))};
}

// Of every result: V = 65536 high + low.
struct WideSums {
  int32_t *high, *low;
};

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
    const I carry = {vshrq_n_s32(both[i].v, 8)};
    store_i(s.high + to, add(load_i(s.high + to), add(high[i], carry)));
    store_i(s.low + to, add(load_i(s.low + to), add(low[i], shift_left<8>(bit_and(both[i], set1_i(255))))));
  }
}

constexpr size_t wide_scratch_bytes() {
  return (kWideStep / 2 + 2 * kWideRows) * kExactColumns * sizeof(int32_t);
}

// As sum_exact_pairs, of wide rows over k of their elements.
void sum_exact_wide(const WideRow&, const int32_t* left, int64_t lda, const int32_t* panel, int64_t k,
                    int64_t rows, int64_t columns, double* sum, void* scratch) {
  auto* planes = static_cast<int32_t*>(scratch);
  int32_t* const sums = planes + kWideStep / 2 * kExactColumns;
  const WideSums s{sums, sums + kWideRows * kExactColumns};
  const int64_t results = rows * kExactColumns, pairs = exact_pairs(k);
  for (int64_t i = 0; i < results; ++i) sum[i] = 0;
  for (int64_t piece = 0; piece < k; piece += kWideLongest) {
    for (int64_t i = 0; i < results; ++i) s.high[i] = s.low[i] = 0;
    for (int64_t first = piece; first < num::min_i64(k, piece + kWideLongest); first += kWideStep) {
      const int64_t quads = (num::min_i64(kWideStep, k - first) + 3) / 4;
      byte_planes(panel + first / 2 * kExactColumns, pairs - first / 2, quads, planes);
      for (int64_t r = 0; r < rows; r += kWideTileRows) {
        auto tiles = [&](auto tall) __attribute__((always_inline)) {
          for (int64_t c = 0; c < columns; c += kWideVectors * kW)
            wide_tile<decltype(tall)::value>(left + r * lda + first / 2, lda, planes + c, quads, s,
                                             r * kExactColumns + c);
        };
        dispatch_tile_rows<kWideTileRows>(static_cast<int>(num::min_i64(kWideTileRows, rows - r)), tiles);
      }
    }
    for (int64_t i = 0; i < results; i += kW) {
      auto* at = reinterpret_cast<int64_t*>(sum + i);
      const D both = fma(to_double(load_i(s.high + i)), set1_d(65536), to_double(load_i(s.low + i)));
      store_l(at, bits(add(from_bits(load_l(at)), both)));
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
