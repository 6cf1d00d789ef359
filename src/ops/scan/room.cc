#include <algorithm>

#include "num/reduce/scan.h"
#include "ops/scan/scan.h"

namespace invar::ops {

ScanShape scan_shape(const Call& call) {
  const View& x = call.in[0];
  int64_t axis = attr_i(call, "axis", -1);
  if (axis < 0) axis += x.rank;
  ScanShape s{1, x.dim[axis], 1, 0, 0, attr_i(call, "exclusive", 0) != 0, attr_i(call, "reverse", 0) != 0};
  for (int i = 0; i < axis; ++i) s.outer *= x.dim[i];
  for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) s.inner *= x.dim[i];
  s.width = std::min(s.inner, num::portable::kWideColumns);
  while (s.width >= 128 && s.outer * ((s.inner + s.width - 1) / s.width) < 16)
    s.width = s.width / 2 / 16 * 16;
  s.blocks = s.width ? (s.inner + s.width - 1) / s.width : 0;
  return s;
}

int64_t scan_units(const Call& call, int) {
  ScanShape s = scan_shape(call);
  return s.outer * s.blocks;
}

size_t scan_scratch(const Call& call) {
  return static_cast<size_t>(num::portable::kScanWork * scan_shape(call).width) * sizeof(float);
}

}  // namespace invar::ops
