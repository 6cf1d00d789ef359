// What the rows of matmul share: the shapes of a call and how its work is cut.
#pragma once
#include "kernels/call.h"

namespace invar::ops::matmul {

struct Shape {
  int64_t m, n, k;
  bool trans_a, trans_b;
  // Leading dimensions that are not rows: products one after another, each with its own part of a and b.
  int rank;
  int64_t batches, dim[kMaxRank], stride_a[kMaxRank], stride_b[kMaxRank];  // strides in elements
  int64_t matrices_b;                                                      // in b
};
Shape shape(const View& a, const View& b, const View& out, bool trans_a, bool trans_b);
// Where product `batch` finds its operands.
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

// How the outputs of a product are cut into units: blocks of rows x runs of panels. Panels hold `panel` columns, tiles up
// to `tallest` rows; wide(h) panels go into a tile of h rows.
struct Cut {
  int64_t panels, rows, row_blocks, run, runs;
  int64_t
      chains;  // blocks of k taken before the next panel: all, or as many as keep the rows of a in the second cache
  int64_t
      kept;  // panels whose sums are kept between such blocks: units of the same rows that are computed together
  int64_t together;  // panels that the rows of a tile meet: 2^-i of those in a tile of one row, or a multiple
  bool copies_a;     // into rows of one chain each
  int64_t units() const { return row_blocks * runs; }
};
Cut cut(const Shape&, int panel, int tallest, int (*wide)(int rows));

}  // namespace invar::ops::matmul
