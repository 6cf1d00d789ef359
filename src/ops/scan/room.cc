// The shape, work units and scratch of scans.
#include "num/reduce/scan.h"
#include "ops/scan/scan.h"

namespace invar::ops {

ScanShape scan_shape(const Call& call) {
  const CumsumAttributes a(call);
  return {column_blocks(axis_extents(call.in[0], a.axis), num::portable::kWideColumns, 64, 16),
          a.exclusive != 0, a.reverse != 0};
}

int64_t scan_units(const Call& call, int) {
  ScanShape s = scan_shape(call);
  return s.outer * s.blocks;
}

size_t scan_scratch(const Call& call) {
  return static_cast<size_t>(num::portable::kScanWork * scan_shape(call).width) * sizeof(float);
}

}  // namespace invar::ops
