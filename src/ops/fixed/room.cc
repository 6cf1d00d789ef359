// The shape of fixed-point sums.
#include "ops/fixed/fixed.h"

namespace invar::ops {

FixedUnits fixed_units(const Call& call) {
  const View& x = call.in[0];
  int64_t n = 1;
  for (int i = 1; i < x.rank; ++i) n *= x.dim[i];
  return {x.dim[0], n};
}

}  // namespace invar::ops
