// Rows of packed weights as the kernels of a GPU read them: tiles of 64 rows and 128 numbers, each
// with its codes and the factors that make numbers of them, so that one copy moves a tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/packed_rows.h"

namespace invar::weights {

// A tile has its codes, then `parts` times the scales S of its 64 rows, each followed by their
// addends A if there are such: part p has those of numbers [128 p / parts, 128 (p + 1) / parts).
// Number q is q S + A, or q S of small floats, and then the rounding (Coding). Without addends A is
// -`zero` S.
//
// Codes lie as the tensor cores take them from registers. Thread t of 128 has rows 16 (t / 32) +
// t % 32 / 4 and 8 more, and of each 16 numbers the four from 4 (t % 4) on. Its words of four codes
// are those of the first row, then of the second one, of 16 numbers after the other. 8 bits: words
// 4 s to 4 s + 3 at 2048 s + 16 t. 4 bits: the codes of both rows share a word, the second one's in
// the high halves of its bytes; words 4 v to 4 v + 3 at 2048 v + 16 t.
//
// Behind the tiles, which lie row of tiles after row, is the scale e of each row as exact16 rounds
// it (exact16.1). S and A are 2^enlarged_by(e) times what they are. That is exact where it matters:
// no number is rounded that is below the normal ones, and what becomes subnormal in rows made
// smaller is far below what counts. So kernels may multiply S by up to 2^24: scales of integers are
// at most 2^90 (packed_matrix.h), and those of floats about as large as a number of the row, or 0
// where all of these are 0.
struct CodeTiles {
  static constexpr int kRows = 64, kColumns = 128, kThreads = 128, kRowsApart = 8;
  static constexpr int32_t enlarged_by(int32_t e) { return e < -100 ? 64 : e > 60 ? -64 : 0; }

  Codes codes = Codes::integers;
  Rounding rounding = Rounding::none;
  int bits = 8, parts = 1, zero = 0;
  bool has_addends = false;
  int64_t rows = 0, across = 0;  // in all; tiles of a row
  const uint8_t* memory = nullptr;

  // Whether there are kernels for such rows, and their tiles, without memory.
  static bool covers(const PackedRows&);
  static CodeTiles of(const PackedRows&);
  // Writes row `down` of tiles and the scales of its rows.
  void pack(const PackedRows&, int64_t down, uint8_t* tiles, int32_t* scales) const;

  int64_t down() const { return (rows + kRows - 1) / kRows; }
  int code_bytes() const { return bits * kRows * kColumns / 8; }
  int tile_bytes() const { return code_bytes() + parts * (has_addends ? 2 : 1) * kRows * 4; }
  size_t row_bytes() const { return static_cast<size_t>(across) * static_cast<size_t>(tile_bytes()); }
  size_t scales_at() const { return static_cast<size_t>(down()) * row_bytes(); }
  size_t bytes() const { return scales_at() + static_cast<size_t>(down()) * kRows * sizeof(int32_t); }
};

}  // namespace invar::weights
