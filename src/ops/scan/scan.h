// Scans along one axis: x as [outer, n, inner].
#pragma once
#include "ops/call.h"

namespace invar::ops {

struct ScanShape {
  int64_t outer, n, inner;
  int64_t width, blocks;  // columns at a time, where rows lie across memory; blocks of them in `inner`
  bool exclusive, reverse;
};
ScanShape scan_shape(const Call&);
int64_t scan_units(const Call&, int phase);
size_t scan_scratch(const Call&);

// Where the i-th element of a row stands along the axis.
INVAR_INLINE int64_t scan_place(const ScanShape& s, int64_t i) {
  return s.reverse ? s.n - 1 - i : i;
}

}  // namespace invar::ops
