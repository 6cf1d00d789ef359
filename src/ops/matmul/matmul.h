// Shapes of a matmul call and the partition of its work, shared by all rows.
#pragma once
#include "kernels/call.h"
#include "ops/matmul/attributes.h"

namespace invar::ops::matmul {

struct Shape {
  int64_t m, n, k;
  bool trans_a, trans_b;
  // Batch dimensions: independent products, each with its own part of A and B.
  int rank;
  int64_t batches, dim[kMaxRank], stride_a[kMaxRank], stride_b[kMaxRank];  // strides in elements
  int64_t matrices_b;                                                      // matrices in B
};
Shape shape(const View& a, const View& b, const View& out, bool trans_a, bool trans_b);
Shape shape(const Call&);  // of an operation with matmul's attributes, or some of them
// Operand offsets of product `batch`.
struct Offsets {
  int64_t a, b, b_matrix;
};
INVAR_INLINE Offsets offsets(const Shape& s, int64_t batch) {
  Offsets o{};
  for (int i = s.rank - 1; i >= 0; --i) {
    const int64_t at = batch % s.dim[i];
    batch /= s.dim[i];
    o.a += at * s.stride_a[i], o.b += at * s.stride_b[i];
  }
  o.b_matrix = s.k > 0 && s.n > 0 ? o.b / (s.k * s.n) : 0;
  return o;
}

// The partition of the outputs of a product into units: row blocks x runs of panels. Panels have
// `panel` columns, register tiles up to `tallest` rows; a tile of h rows covers wide(h) panels.
struct WorkPartition {
  int64_t panels, rows, row_blocks, run, runs;
  // K blocks taken before the next panel: all, or as many as keep the rows of A in the L2 cache.
  int64_t chains;
  // Panels whose sums are kept between such blocks: units of the same rows computed together.
  int64_t sum_panels;
  int64_t tile_panels;  // panels that the rows of a tile meet: 2^-i of those of a one-row tile, or a multiple
  bool copies_a;        // A is packed, one K block at a time
  int64_t units() const { return row_blocks * runs; }
};
WorkPartition partition(const Shape&, int panel, int tallest, int (*wide)(int rows));

// A grouped product (grouped_matmul.1): row r of the result is row r / share of a times matrix
// group[r] of b, which has `groups` of them: G operands, or one operand that stacks them.
struct GroupedShape {
  int64_t rows, share, n, k, groups;
  bool trans_b, stacked;
};
GroupedShape grouped_shape(const Call&);
// The matrix that an index means, counted from the end if it is negative; -1: out of bounds.
INVAR_INLINE int64_t matrix_index(int64_t index, int64_t groups) {
  if (index < 0) index += groups;
  return index >= 0 && index < groups ? index : -1;
}
inline constexpr int kFirstMatrix = 2;     // operand: the first matrix, behind a and the indices
inline constexpr int kMostMatrices = 512;  // operands: a GPU kernel is given all their pointers

// fixed_matmul.1: the products of units, a [units, length, rows] and b [units, length, columns].
struct UnitProducts {
  int64_t units, length, rows, columns;
};
UnitProducts unit_products(const Call&);
// The operands and the result of the product of `units` units from `first` on, and its attributes.
struct ProductViews {
  View in[2], out;
};
ProductViews product_views(const Call&, int64_t first, int64_t units, float* out);
const Attributes& transposed_a();

}  // namespace invar::ops::matmul
