// Sums of exact16 products of many rows by tile registers: both operands as two planes of bytes,
// four products of 16 rows, 16 columns and 64 k. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/exact16/layout.h"
#include "kernels/cpu/gemm_microkernel.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr bool kWideProducts = true;
constexpr int64_t kWideFewest = 32;  // rows of a product from which on it is wide: tuning
constexpr int64_t kWideRows = 192;   // rows of A that use the planes of one panel
constexpr int64_t kWideStep = 256;   // integers of a row written at a time
constexpr int64_t kTileK = 64, kTileRows16 = 16;
constexpr int64_t kTileDepth = 512;  // k whose planes of a panel stay in the L1 cache
// k whose products of two planes stay below 2^31 in sum: (2 * 127 * 128) each.
constexpr int64_t kWideLongest = 65536;

// A row of A: of each kTileK, the high bytes and the low bytes, as quad_of() orders them.
// Rows are multiples of 64 bytes with their scale.
struct WideRow {
  int64_t steps;
  explicit WideRow(int64_t k) : steps((k + kTileK - 1) / kTileK) {}
  int64_t words() const { return steps * 32 + 15; }
};

// Writes n <= kWideStep integers of a row, a step from `begin` on, and 0 up to kTileK.
INVAR_INLINE void write_wide_row(const int32_t* q, int64_t begin, int64_t n, const WideRow&, int32_t* row) {
  const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  auto write = [&](int32_t * to, I x) __attribute__((always_inline)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(_mm512_cvtepi32_epi8(x.v), order));
  };
  for (int64_t i = 0; i < (n + kTileK - 1) / kTileK * kTileK; i += kW) {
    int32_t* const to = row + (begin + i) / kTileK * 32 + i % kTileK / 4;
    const I x = bits(load_n(reinterpret_cast<const float*>(q + i), static_cast<int>(n - i)));
    write(to, high_part(x));
    write(to + 16, x);
  }
}

// The planes of `quads` quads of k of a panel, as quad_of() orders them: tiles of 16 columns and 16
// quads, high and low in turns.
INVAR_INLINE void byte_planes(const int32_t* panel, int64_t rows, int64_t quads, int32_t* to) {
  const I odd = set1_i(static_cast<int32_t>(0xff00ff00));
  for (int64_t i = 0; i < quads; ++i, panel += 2 * kExactColumns) {
    int32_t* const tile = to + i / 16 * 1024 + i % 16 * 16;
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const I first = 2 * i < rows ? load_i(panel + 16 * j) : set1_i(0);
      const I second = 2 * i + 1 < rows ? load_i(panel + kExactColumns + 16 * j) : set1_i(0);
      auto high = [](I x) __attribute__((always_inline))->I {  // plus 128, 16 bits each
        return {_mm512_add_epi16(x.v, _mm512_set1_epi16(128))};
      };
      store_i(tile + 512 * j, bit_or(shift_right<8>(bit_and(high(first), odd)), bit_and(high(second), odd)));
      store_i(tile + 512 * j + 256,
              bit_or(bit_and(first, set1_i(0x00ff00ff)), shift_left<8>(bit_and(second, set1_i(0x00ff00ff)))));
    }
  }
}

// Tile instructions do not tell the compiler which memory they read and write.
INVAR_INLINE void tile_fence(const void* p) {
  __asm__ volatile("" ::"r"(p) : "memory");
}

// Of every result: V = 65536 high + low.
struct WideSums {
  int32_t *high, *low, *tiles;
};

constexpr size_t wide_scratch_bytes() {
  return (kTileDepth * kExactColumns / 2 + 2 * kWideRows * kExactColumns + 4 * 256) * sizeof(int32_t) + 64;
}

struct alignas(64) TileShapes {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16];
};
// Tiles 0 to 3 are sums and 4 and 5 planes of A, of `rows` rows; 6 and 7 are planes of B.
INVAR_INLINE void shape_tiles(int64_t rows) {
  const auto r = static_cast<uint8_t>(rows);
  const TileShapes shapes{.rows = {r, r, r, r, r, r, 16, 16}};
  tile_fence(&shapes);
  _tile_loadconfig(&shapes);
}

// A product of planes has a sum of its own: one waits 52 cycles for the one before, and a fourth
// begins every 16. Adds the products of `rows` <= 16 rows at `a`, lda bytes apart, with 16 columns
// to the sums from `at` on.
INVAR_INLINE void wide_tile(const int8_t* a, int64_t lda, int64_t rows, const int32_t* b, int64_t steps,
                            const WideSums& s, int64_t at) {
  tile_fence(b);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < steps; ++i, a += 2 * kTileK, b += 1024) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, lda);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + 256, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + kTileK, lda);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, s.tiles, 64);
  _tile_stored(1, s.tiles + 256, 64);
  _tile_stored(2, s.tiles + 512, 64);
  _tile_stored(3, s.tiles + 768, 64);
  tile_fence(s.tiles);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t to = at + r * kExactColumns;
    const I both = add(load_i(s.tiles + 256 + r * 16), load_i(s.tiles + 512 + r * 16));
    const I carry = {_mm512_srai_epi32(both.v, 8)};
    const I low = shift_left<8>(bit_and(both, set1_i(255)));
    store_i(s.high + to, add(load_i(s.high + to), add(load_i(s.tiles + r * 16), carry)));
    store_i(s.low + to, add(load_i(s.low + to), add(load_i(s.tiles + 768 + r * 16), low)));
  }
}

// As sum_exact_pairs, of wide rows over k of their elements.
void sum_exact_wide(const WideRow&, const int32_t* left, int64_t lda, const int32_t* panel, int64_t k,
                    int64_t rows, int64_t columns, double* sum, void* scratch) {
  auto* planes = static_cast<int32_t*>(scratch);
  int32_t* const sums = planes + kTileDepth * kExactColumns / 2;
  const WideSums s{sums, sums + kWideRows * kExactColumns, sums + 2 * kWideRows * kExactColumns};
  const int64_t results = rows * kExactColumns, pairs = (k + 1) / 2;
  int64_t shaped = 0;
  for (int64_t i = 0; i < results; ++i) sum[i] = 0;
  for (int64_t piece = 0; piece < k; piece += kWideLongest) {
    for (int64_t i = 0; i < results; ++i) s.high[i] = s.low[i] = 0;
    for (int64_t first = piece; first < num::min_i64(k, piece + kWideLongest); first += kTileDepth) {
      const int64_t steps = (num::min_i64(kTileDepth, k - first) + kTileK - 1) / kTileK;
      byte_planes(panel + first / 2 * kExactColumns, pairs - first / 2, steps * 16, planes);
      for (int64_t r = 0; r < rows; r += kTileRows16) {
        const int64_t tall = num::min_i64(kTileRows16, rows - r);
        if (tall != shaped) shape_tiles(shaped = tall);
        for (int64_t c = 0; c < columns; c += 16)
          wide_tile(reinterpret_cast<const int8_t*>(left + r * lda) + 2 * first, lda * 4, tall,
                    planes + c / 16 * 512, steps, s, r * kExactColumns + c);
      }
    }
    for (int64_t i = 0; i < results; i += kW) {
      const D both = fma(to_double(load_i(s.high + i)), set1_d(65536), to_double(load_i(s.low + i)));
      store_d(sum + i, add(load_d(sum + i), both));
    }
  }
  _tile_release();
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
