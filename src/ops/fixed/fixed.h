// The shape of fixed-point sums, shared by all rows.
#pragma once
#include "kernels/call.h"
#include "num/fixed/fixed_point.h"

namespace invar::ops {

// x [units, n].
struct FixedUnits {
  int64_t units, n;
};
FixedUnits fixed_units(const Call&);

}  // namespace invar::ops
