// Bytes of B widened to pairs of int16 along k, minus their zero points, and sums of products with
// them: one instruction multiplies and adds two k. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/pair_sums.h"
#include "num/contract/schedule.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kByteColumns = 64;  // columns of a panel of B
constexpr int64_t kPairs = 64;        // pairs of k widened at a time: 16 KiB of a panel
constexpr int kTileVectors = 2, kTileRows = kMaxRows;

INVAR_INLINE int64_t pairs_of(int64_t k) {
  return (k + 1) / 2;
}

// Widens pairs [0, pairs) of a panel whose rows are `ld` bytes apart; `rows` of k exist, `columns`
// are valid.
INVAR_INLINE void widen_panel(const uint8_t* b, int64_t ld, int64_t rows, int64_t columns, int32_t moved,
                              const int32_t* zeros, int32_t* out) {
  auto row = [&](const uint8_t* p, int64_t j) __attribute__((always_inline)) {
    const int64_t left = columns - j;
    const I bytes = left >= kW  ? load_u8(p + j)
                    : left <= 0 ? set1_i(0)
                                : load_u8_n(p + j, static_cast<int>(left));
    return sub(bit_xor(bytes, set1_i(moved)), bits(load(reinterpret_cast<const float*>(zeros + j))));
  };
  for (int64_t k = 0; k < rows; k += 2) {
    const uint8_t* low = b + k * ld;
    const uint8_t* high = k + 1 < rows ? low + ld : low;
    for (int64_t j = 0; j < kByteColumns; j += kW) {
      const I pair = bit_or(bit_and(row(low, j), set1_i(0xffff)), shift_left<16>(row(high, j)));
      store_i(out + k / 2 * kByteColumns + j, pair);
    }
  }
}

// sum[r][v] of R rows of A and kTileVectors vectors of a widened panel.
template <int R>
INVAR_INLINE void byte_sums(const int32_t* a, int64_t lda, const int32_t* b, int64_t pairs,
                            I (&sum)[R * kTileVectors]) {
  I acc[R * kTileVectors];
#pragma GCC unroll 32
  for (int i = 0; i < R * kTileVectors; ++i) acc[i] = set1_i(0);
  for (int64_t k = 0; k < pairs; ++k) {
    I w[kTileVectors];
#pragma GCC unroll 32
    for (int v = 0; v < kTileVectors; ++v)
      w[v] = bits(in_register(load(reinterpret_cast<const float*>(b + k * kByteColumns + v * kW))));
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
      if constexpr (kW == 8) {  // all 16 registers hold sums and operands
        add_row_products(acc + r * kTileVectors, a[r * lda + k], w);
        continue;
      }
      const I x = set1_i(a[r * lda + k]);
#pragma GCC unroll 32
      for (int v = 0; v < kTileVectors; ++v)
        acc[r * kTileVectors + v] =
            bits(in_register(from_bits(add(acc[r * kTileVectors + v], pair_products(x, w[v])))));
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < R * kTileVectors; ++i) sum[i] = acc[i];
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
