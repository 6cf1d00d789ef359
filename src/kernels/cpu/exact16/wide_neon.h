// Sums of exact16 products of many rows by NEON's products of bytes: both operands as two planes of
// bytes, four products of planes in three sums. Compiled once per instruction set.
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
constexpr int kWideVectors = 2, kWideTileRows = 4;  // of a tile

// The planes of four k of a vector of columns, as quad_of() orders them.
INVAR_INLINE I high_quad(I first, I second) {
  auto high = [](I x) __attribute__((always_inline))->I {  // plus 128, 16 bits each
    return {vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(x.v), vdupq_n_s16(128)))};
  };
  const I odd = set1_i(static_cast<int32_t>(0xff00ff00));
  return bit_or(shift_right<8>(bit_and(high(first), odd)), bit_and(high(second), odd));
}
INVAR_INLINE I low_quad(I first, I second) {
  const I even = set1_i(0x00ff00ff);
  return bit_or(bit_and(first, even), shift_left<8>(bit_and(second, even)));
}

// The sums of every result: V = 65536 high + low.
struct WideSums {
  int32_t *high, *low;
};

// Adds the sums of a vector of results over some k.
INVAR_INLINE void add_planes(const WideSums& s, int64_t to, I high, I both, I low) {
  const I carry = {vshrq_n_s32(both.v, 8)};
  store_i(s.high + to, add(load_i(s.high + to), add(high, carry)));
  store_i(s.low + to, add(load_i(s.low + to), add(low, shift_left<8>(bit_and(both, set1_i(255))))));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

#if INVAR_EXTENSION_NEON_I8MM
#include "kernels/cpu/exact16/wide_i8mm.h"
#else
#include "kernels/cpu/exact16/wide_dot.h"
#endif

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr size_t wide_scratch_bytes() {
  return (kWideStep / 2 + 2 * kWideRows) * kExactColumns * sizeof(int32_t);
}

// Sums as sum_exact_pairs does, of wide rows over k of their elements.
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
      const int64_t quads = WideRow(num::min_i64(kWideStep, k - first)).quads;
      byte_planes(panel + first / 2 * kExactColumns, pairs - first / 2, quads, planes);
      for (int64_t r = 0; r < rows; r += kWideTileRows) {
        auto tiles = [&](auto tall) __attribute__((always_inline)) {
          for (int64_t c = 0; c < columns; c += kWideVectors * kW)
            wide_tile<decltype(tall)::value>(left + r * lda + first / 2, lda, planes + c * kWideQuads, quads,
                                             s, r * kExactColumns + c);
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
