// What the kernels of grouped_matmul_exact16 are given: rows sorted by their matrices, in tiles of
// one matrix each, as planes of bytes; products of the same rows, whose columns follow one another.
#pragma once
#include "ops/matmul/cuda/exact16/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {

constexpr int kMostGroupedProducts = 4;
constexpr int kTallestTile = 128;  // rows of a tile of the kernel of many rows

// Of the tiles of a matrix: the first, and how many.
struct GroupedTile {
  int32_t matrix, rows, first, count;
};
// The tiles there are, and how few rows are cut. Items (a tile of rows, one of columns) are dealt
// out whole as long as each block gets one; then the chunks of the rest are shared out evenly.
struct GroupedWork : EvenShares {
  int tiles, grid, rounds;
};
struct GroupedExact {
  int64_t rows, share, groups, k;
  const int64_t* index;
  uint32_t* fault;
  int products, chunks;
  int column_end[kMostGroupedProducts];  // tiles of 64 columns up to here, of all products
  int pair_end[kMostGroupedProducts];    // pairs of them
  int64_t n[kMostGroupedProducts];
  float* out[kMostGroupedProducts];
  const uint8_t** matrices;  // [product][matrix]: blocks as in Planes, then scales
  GroupedWork* work;
  GroupedTile* tiles;
  unsigned* rows_of_matrix;  // of more matrices than a block counts in its shared memory
  int* first_tile;           // likewise
  int32_t *row, *slot;       // the row of a slot of a tile, and the slot of a row
  Planes a;                  // of slots
  uint32_t* counters;        // of a block: finished parts of the tile that begins last there
  int64_t* sums;             // of a block: what it has of its first and of its last tile
  int most_grid;
};

namespace {

// A product and which of its tiles, or pairs of tiles, of 64 columns.
struct GroupedColumn {
  int product, column;
};
__device__ inline GroupedColumn column_at(const GroupedExact& in, const int (&end)[kMostGroupedProducts],
                                          int column) {
  int p = 0;
  while (p + 1 < in.products && column >= end[p]) ++p;
  return {p, p ? column - end[p - 1] : column};
}
__device__ inline int columns_of(const GroupedExact& in, int product) {
  return static_cast<int>(ceil_div(in.n[product], kBlockRows));
}
__device__ inline const uint8_t* matrix_of(const GroupedExact& in, int product, int matrix) {
  return in.matrices[product * in.groups + matrix];
}
__device__ inline const uint8_t* block_of_matrix(const GroupedExact& in, const uint8_t* matrix, int column) {
  return matrix + int64_t{column} * in.chunks * (2 * kPlane);
}
__device__ inline const int32_t* scales_of_matrix(const GroupedExact& in, int product, int matrix) {
  return reinterpret_cast<const int32_t*>(
      block_of_matrix(in, matrix_of(in, product, matrix), columns_of(in, product)));
}

// Item i of tiles times `columns`, by matrices: all tiles of one meet a column before the next.
struct GroupedItem {
  int tile, column;
};
__device__ inline GroupedItem grouped_item(const GroupedExact& in, int i, int columns) {
  const GroupedTile g = in.tiles[i / columns];
  const TileInRuns at = tile_in_runs(i - g.first * columns, g.count, columns);
  return {g.first + at.row, at.column};
}
// Where slot `at` of a tile is stored: the row of its result, or -1 - the row if it has no matrix.
__device__ inline void store_grouped(float* out, int64_t n, int32_t row, int64_t column, float y) {
  const bool none = row < 0;
  out[(none ? -1 - int64_t{row} : int64_t{row}) * n + column] = none ? __uint_as_float(0x7fc00000) : y;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
