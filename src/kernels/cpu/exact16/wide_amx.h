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
constexpr int64_t kTileDepth = 1024;  // k whose planes of 16 columns stay in the L1 cache
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
// quads, high and low in turns; those of the first 16 columns, then the others.
INVAR_INLINE void byte_planes(const int32_t* panel, int64_t rows, int64_t quads, int32_t* to) {
  const __m512i even = _mm512_set1_epi32(0x00ff00ff), round = _mm512_set1_epi16(128);
  const int64_t other = quads / 16 * 512;
  auto planes = [&](__m512i first, __m512i second, int32_t * tile) __attribute__((always_inline)) {
    const __m512i f = _mm512_srli_epi32(_mm512_add_epi16(first, round), 8),
                  s = _mm512_add_epi16(second, round);
    // even ? f : s, bit by bit
    _mm512_storeu_si512(tile, _mm512_ternarylogic_epi32(even, f, s, 0xca));
    _mm512_storeu_si512(tile + 256,
                        _mm512_ternarylogic_epi32(even, first, _mm512_slli_epi32(second, 8), 0xca));
  };
  auto at = [&](int64_t row, int64_t c) __attribute__((always_inline))->__m512i {
    return row < rows ? _mm512_loadu_si512(panel + row * kExactColumns + c) : _mm512_setzero_si512();
  };
  for (int64_t i = 0; i < quads; ++i) {
    int32_t* const tile = to + i / 16 * 512 + i % 16 * 16;
    planes(at(2 * i, 0), at(2 * i + 1, 0), tile);
    planes(at(2 * i, 16), at(2 * i + 1, 16), tile + other);
  }
}

// Tile instructions do not tell the compiler which memory they read and write.
INVAR_INLINE void tile_fence(const void* p) {
  __asm__ volatile("" ::"r"(p) : "memory");
}

constexpr size_t wide_scratch_bytes() {
  return (kTileDepth * kExactColumns + 4 * kWideRows * kExactColumns) * sizeof(int32_t) + 64;
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

// The memory that steps prefetch, lines of 64 bytes each: the sums of the next tile to write, and
// the panel from its next planes on.
struct WidePrefetch {
  const char *sums, *panel;
  int64_t lines_of_sums, lines_of_panel;
};
// A product of planes has a sum of its own: one waits 52 cycles for the one before, and a fourth
// begins every 16. Adds the products of 16 rows at `a`, lda bytes apart, with 16 columns to the
// four sums at `sums`, or begins them there.
INVAR_INLINE void wide_tile(const int8_t* a, int64_t lda, const int32_t* b, int64_t steps, int32_t* sums,
                            bool begin, WidePrefetch& next) {
  tile_fence(b);
  if (begin) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + 256, 64);
    _tile_loadd(2, sums + 512, 64);
    _tile_loadd(3, sums + 768, 64);
  }
  for (int64_t i = 0; i < steps; ++i, a += 2 * kTileK, b += 512) {
    for (int64_t j = 0; j < next.lines_of_sums; ++j, next.sums += 64) __builtin_prefetch(next.sums, 1, 3);
    for (int64_t j = 0; j < next.lines_of_panel; ++j, next.panel += 64) __builtin_prefetch(next.panel, 0, 2);
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, lda);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + 256, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + kTileK, lda);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
  tile_fence(sums);
}

// V of 16 columns from their sums, 65536 high + 256 both + low; adds to it.
INVAR_INLINE void join_planes(const int32_t* s, double* sum) {
  const I both = add(load_i(s + 256), load_i(s + 512));
  const I carry = {_mm512_srai_epi32(both.v, 8)};
  const I high = add(load_i(s), carry), low = add(load_i(s + 768), shift_left<8>(bit_and(both, set1_i(255))));
  store_d(sum, add(load_d(sum), fma(to_double(high), set1_d(65536), to_double(low))));
}

// Sums as sum_exact_pairs does, of wide rows over k of their elements.
void sum_exact_wide(const WideRow&, const int32_t* left, int64_t lda, const int32_t* panel, int64_t k,
                    int64_t rows, int64_t columns, double* sum, void* scratch) {
  auto* planes = static_cast<int32_t*>(scratch);
  int32_t* const sums = planes + kTileDepth * kExactColumns;
  const int64_t pairs = (k + 1) / 2;
  int64_t shaped = 0;
  for (int64_t i = 0; i < rows * kExactColumns; ++i) sum[i] = 0;
  for (int64_t piece = 0; piece < k; piece += kWideLongest) {
    const int64_t end = num::min_i64(k, piece + kWideLongest);
    for (int64_t first = piece; first < end; first += kTileDepth) {
      const int64_t steps = (num::min_i64(kTileDepth, k - first) + kTileK - 1) / kTileK;
      byte_planes(panel + first / 2 * kExactColumns, pairs - first / 2, steps * 16, planes);
      // 64 lines of sums a tile, and 64 of the panel for kTileK of all tiles.
      WidePrefetch next{nullptr,
                        reinterpret_cast<const char*>(panel + (first + steps * kTileK) / 2 * kExactColumns),
                        (steps + 63) / steps, num::min_i64(8, 1 + 64 / ((rows + 15) / 16 * 2))};
      for (int64_t c = 0; c < columns; c += 16)
        for (int64_t r = 0; r < rows; r += kTileRows16) {
          next.sums = reinterpret_cast<const char*>(sums + (c * kWideRows + r * 16) * 4 + 1024);
          const int64_t tall = num::min_i64(kTileRows16, rows - r);
          if (tall != shaped) shape_tiles(shaped = tall);
          wide_tile(reinterpret_cast<const int8_t*>(left + r * lda) + 2 * first, lda * 4,
                    planes + c / 16 * steps * 512, steps, sums + (c * kWideRows + r * 16) * 4, first == piece,
                    next);
        }
    }
    for (int64_t c = 0; c < columns; c += 16)
      for (int64_t r = 0; r < rows; ++r)
        join_planes(sums + (c * kWideRows + r / 16 * 256) * 4 + r % 16 * 16, sum + r * kExactColumns + c);
  }
  _tile_release();
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
