// Reductions as a nest of kept and reduced dimensions (reduce.2), with adjacent dimensions
// of the same kind merged. Computed out of line (kernels/call.h) from shapes and axes only, so no
// unit depends on threads.
#pragma once
#include "kernels/call.h"
#include "ops/reduce/attributes.h"

namespace invar::ops {

// Dimensions from the outermost; strides in elements.
struct StridedDims {
  int count = 0;
  int64_t dim[kMaxRank], stride[kMaxRank];
  // The offset of element i in row-major order.
  INVAR_INLINE int64_t offset(const StridedDims& d, int64_t i) {
    int64_t at = 0;
    for (int k = d.count - 1; k > 0; --k) at += i % d.dim[k] * d.stride[k], i /= d.dim[k];
    return d.count ? at + i * d.stride[0] : 0;
  }
};

struct Reduction {
  int64_t n, outputs;         // elements per row; rows
  StridedDims reduced, kept;  // without the columns
  bool columnwise;            // the innermost dimension is kept: columns of `inner` adjacent rows
  int64_t inner;              // 1 if the innermost dimension is reduced
  int64_t width;              // columns at a time
  bool dense;                 // all columns, without gaps
  int64_t blocks;             // of columns in `inner`, or of `rows` rows
  int64_t rows;
  int64_t outer;     // how often `inner` repeats
  int64_t segments;  // per row
  bool split;        // a unit is one segment; else all segments of its rows
};

Reduction reduction_of(const Call&);

// Says if dimension `axis` is reduced by attribute `axes` (absent: all are), and what is wrong with
// `axes`.
bool is_reduced(const Call&, int axis);
const char* check_axes(const Call&);

inline constexpr int64_t kArgColumns = 256;
ColumnBlocks arg_columns(const Call&);

// Shared by the rows of all instruction sets.
int64_t reduce_units(const Call&, int phase);
int64_t centred_units(const Call&, int phase);
size_t reduce_scratch(const Call&);
size_t reduce_shared(const Call&);
int64_t arg_units(const Call&, int phase);

}  // namespace invar::ops
