// Sums of exact16 products of many rows by instructions that multiply bytes four at a time: V
// modulo 2^32 from pairs of whole integers, which wrap, and V / 65536 from the high bytes alone.
// That is three instructions where two planes of A take four. Over 256 k, V is within 2^31 of 65536
// times the sum of the high bytes' products, so both together give V. Compiled once per
// instruction set.
#pragma once
#include "kernels/cpu/exact16/pair_products.h"
#include "kernels/cpu/gemm_microkernel.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// k whose 2 * 256 * 127 * 128 + 128 * 128 each stay below 2^31.
constexpr int64_t kWideStep = 256;
// k whose high bytes' products and their sums with `carry` below stay within 2^31.
constexpr int64_t kWideLongest = 65536;
constexpr bool kWideProducts = true;
constexpr int64_t kWideFewest = 16;  // rows of a product from which on it is wide: tuning
constexpr int64_t kWideRows = 96;    // rows of A that use the high bytes of one panel
constexpr int kWideVectors = 2, kWideTileRows = kW == 16 ? 6 : 3;

// A row of A: its pairs, padded to quads of k; the high bytes of each quad, in the order of
// quad_of(); of each kWideStep, -128 times the sum of the high bytes.
struct WideRow {
  int64_t quads, steps;
  explicit WideRow(int64_t k) : quads((k + 3) / 4), steps((k + kWideStep - 1) / kWideStep) {}
  int64_t bytes() const { return 2 * quads; }
  int64_t starts() const { return 3 * quads; }
  int64_t words() const { return 3 * quads + steps; }
};

// Writes n <= kWideStep integers of a row, a step from `begin` on; those up to a quad are 0, and up
// to 4 kW may be read.
INVAR_INLINE void write_wide_row(const int32_t* q, int64_t begin, int64_t n, const WideRow& layout,
                                 int32_t* row) {
  int32_t *pairs = row + begin / 2, *bytes = row + layout.bytes() + begin / 4;
  I total = set1_i(0);
  for (int64_t i = 0; i < n; i += 4 * kW) {
    alignas(64) int32_t quads[kW];
    for (int v = 0; v < 4; ++v) {
      const int64_t at = i + v * kW, left = num::min_i64(kW, (n - at + 3) / 4 * 4);
      if (left <= 0) break;
      const I x = bits(load_part(reinterpret_cast<const float*>(q + at), static_cast<int>(left)));
      const I high = high_part(x);
      total = add(total, high);
      store_halves(pairs, at, x, left);
      store_u8(reinterpret_cast<uint8_t*>(quads) + v * kW, bit_and(high, set1_i(255)));
    }
    const I x = load_i(quads);  // k 0, 1, 2, 3
    const I swapped =
        bit_or(shift_left<8>(bit_and(x, set1_i(0xff00))), bit_and(shift_right<8>(x), set1_i(0xff00)));
    const I ordered = bit_or(bit_and(x, set1_i(static_cast<int32_t>(0xff0000ff))), swapped);
    store_part(reinterpret_cast<float*>(bytes + i / 4), from_bits(ordered),
               static_cast<int>(num::min_i64(kW, (n - i + 3) / 4)));
  }
  alignas(64) int32_t lanes[kW];
  store_i(lanes, total);
  int32_t sum = 0;
  for (const int32_t x : lanes) sum += x;
  row[layout.starts() + begin / kWideStep] = -128 * sum;
}

// The high bytes of quads of k of a panel, plus 128, as quad_of() orders them.
INVAR_INLINE void high_bytes(const int32_t* panel, int64_t quads, int32_t* to) {
  auto moved = [](const int32_t* p) __attribute__((always_inline)) {  // q + 32768 + 128, 16 bits each
    return add(bit_xor(load_i(p), set1_i(INT32_MIN | 0x8000)), set1_i(0x00800080));
  };
  const I odd = set1_i(static_cast<int32_t>(0xff00ff00));
  for (int64_t i = 0; i < quads; ++i, panel += 2 * kExactColumns, to += kExactColumns)
#pragma GCC unroll 4
    for (int j = 0; j < kExactColumns; j += kW)
      store_i(to + j, bit_or(shift_right<8>(bit_and(moved(panel + j), odd)),
                             bit_and(moved(panel + kExactColumns + j), odd)));
}

INVAR_INLINE I high_half(I x) {  // x / 65536, rounded down
  return sub(shift_right<16>(bit_xor(x, set1_i(INT32_MIN))), set1_i(32768));
}

// The sums of every result after some steps: V modulo 2^32; the sum of the high bytes' products;
// and the sum of (V - 65536 high) / 65536 of each step, rounded down.
struct WideSums {
  int32_t *low, *high, *carry;
};

template <int R>
INVAR_INLINE void wide_tile(const int32_t* a, int64_t lda, const int32_t* bytes, const int32_t* starts,
                            const int32_t* b, const int32_t* b_high, int64_t quads, const WideSums& s,
                            int64_t at) {
  I low[R * kWideVectors], high[R * kWideVectors];
#pragma GCC unroll 32
  for (int i = 0; i < R * kWideVectors; ++i)
    low[i] = set1_i(0), high[i] = set1_i(starts[i / kWideVectors * lda]);
  for (int64_t k = 0; k < quads; ++k) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      I w[kWideVectors];
#pragma GCC unroll 32
      for (int v = 0; v < kWideVectors; ++v) w[v] = load_i(b + (2 * k + half) * kExactColumns + v * kW);
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const I x = set1_i(a[r * lda + 2 * k + half]);
#pragma GCC unroll 32
        for (int v = 0; v < kWideVectors; ++v) {
          low[r * kWideVectors + v] = add_pair_products(low[r * kWideVectors + v], x, w[v]);
        }
      }
    }
    I w[kWideVectors];
#pragma GCC unroll 32
    for (int v = 0; v < kWideVectors; ++v)
      w[v] = bits(in_register(from_bits(load_i(b_high + k * kExactColumns + v * kW))));
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
      const I x = set1_i(bytes[r * lda + k]);
#pragma GCC unroll 32
      for (int v = 0; v < kWideVectors; ++v) {
        high[r * kWideVectors + v] = add_quad_products(high[r * kWideVectors + v], w[v], x);
      }
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < R * kWideVectors; ++i) {
    const int64_t to = at + i / kWideVectors * kExactColumns + i % kWideVectors * kW;
    const I rest = sub(low[i], shift_left<16>(high[i]));
    store_i(s.low + to, add(load_i(s.low + to), low[i]));
    store_i(s.high + to, add(load_i(s.high + to), high[i]));
    store_i(s.carry + to, add(load_i(s.carry + to), high_half(rest)));
  }
}

constexpr size_t wide_scratch_bytes() {
  return (kWideStep / 4 + 3 * kWideRows) * kExactColumns * sizeof(int32_t);
}

// Sums as sum_exact_pairs does, of wide rows over k of their elements.
void sum_exact_wide(const WideRow& layout, const int32_t* left, int64_t lda, const int32_t* panel, int64_t k,
                    int64_t rows, int64_t columns, double* sum, void* scratch) {
  auto* b_high = static_cast<int32_t*>(scratch);
  const int64_t results = rows * kExactColumns;
  const WideSums s{b_high + kWideStep / 4 * kExactColumns,
                   b_high + (kWideStep / 4 + kWideRows) * kExactColumns,
                   b_high + (kWideStep / 4 + 2 * kWideRows) * kExactColumns};
  for (int64_t i = 0; i < results; ++i) sum[i] = 0;
  for (int64_t piece = 0; piece < k; piece += kWideLongest) {
    for (int64_t i = 0; i < results; ++i) s.low[i] = s.high[i] = s.carry[i] = 0;
    for (int64_t first = piece; first < num::min_i64(k, piece + kWideLongest); first += kWideStep) {
      const int64_t quads = (num::min_i64(kWideStep, k - first) + 3) / 4;
      const int32_t* const b = panel + first / 2 * kExactColumns;
      high_bytes(b, quads, b_high);
      for (int64_t r = 0; r < rows; r += kWideTileRows) {
        auto tiles = [&](auto tall) __attribute__((always_inline)) {
          const int32_t* const a = left + r * lda;
          for (int64_t c = 0; c < columns; c += kWideVectors * kW)
            wide_tile<decltype(tall)::value>(a + first / 2, lda, a + layout.bytes() + first / 4,
                                             a + layout.starts() + first / kWideStep, b + c, b_high + c,
                                             quads, s, r * kExactColumns + c);
        };
        dispatch_tile_rows<kWideTileRows>(static_cast<int>(num::min_i64(kWideTileRows, rows - r)), tiles);
      }
    }
    for (int64_t i = 0; i < results; i += kW) {
      const I high = add(load_i(s.high + i), load_i(s.carry + i));
      const I low = sub(load_i(s.low + i), shift_left<16>(high));  // 0 ... 65535 of each step
      auto* at = reinterpret_cast<int64_t*>(sum + i);
      store_l(at, bits(add(from_bits(load_l(at)), fma(to_double(high), set1_d(65536), to_double(low)))));
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
