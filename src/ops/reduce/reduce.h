// How the reductions of this room walk a tensor (spec.md reduce.2): memory is a nest of kept and reduced dimensions,
// neighbours of the same kind merged. Computed out of line (kernels/call.h) from shapes and axes alone, so that no unit
// depends on threads.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

// Dimensions from the outermost; strides in elements.
struct Dims {
  int count = 0;
  int64_t dim[kMaxRank], stride[kMaxRank];
  // The offset of the i-th element in row-major order.
  INVAR_INLINE int64_t offset(const Dims& d, int64_t i) {
    int64_t at = 0;
    for (int k = d.count - 1; k > 0; --k) at += i % d.dim[k] * d.stride[k], i /= d.dim[k];
    return d.count ? at + i * d.stride[0] : 0;
  }
};

struct Reduction {
  int64_t n, outputs;  // elements of a row; rows
  Dims reduced, kept;  // without the columns
  bool across;         // memory ends in a kept dimension: columns of `inner` neighbouring rows
  int64_t inner;       // 1 where memory ends in a reduced dimension
  int64_t width;       // columns at a time
  bool dense;          // all columns, without gaps
  int64_t blocks;      // of columns in `inner`, or of `rows` rows
  int64_t rows;
  int64_t outer;     // how often `inner` occurs
  int64_t segments;  // of a row
  bool split;        // a unit is one segment, or all segments of its rows
};

Reduction reduction_of(const Call&);

// The attribute `axes`: whether dimension `axis` is reduced (absent: all are), and what is wrong with it.
bool is_reduced(const Call&, int axis);
const char* check_axes(const Call&);

inline constexpr int64_t kArgColumns = 256;
Columns arg_columns(const Call&);

// What the rows of all instruction sets share.
int64_t reduce_units(const Call&, int phase);
int64_t centred_units(const Call&, int phase);
size_t reduce_scratch(const Call&);
size_t reduce_shared(const Call&);
int64_t arg_units(const Call&, int phase);

}  // namespace invar::ops
