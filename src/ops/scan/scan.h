// The shape of cumsum and cumprod, shared by all rows.
#pragma once
#include "kernels/call.h"
#include "ops/scan/attributes.h"

namespace invar::ops {

struct ScanShape : ColumnBlocks {
  bool exclusive, reverse;
};
ScanShape scan_shape(const Call&);
int64_t scan_units(const Call&, int phase);
size_t scan_scratch(const Call&);

// The position along the axis of element i of a row.
INVAR_INLINE int64_t scan_position(const ScanShape& s, int64_t i) {
  return s.reverse ? s.n - 1 - i : i;
}

}  // namespace invar::ops
