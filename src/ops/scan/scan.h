// What the rows of cumsum and cumprod share.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

struct ScanShape : Columns {
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
