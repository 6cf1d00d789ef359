// The shape and the work units of groupnorm.
#include "ops/groupnorm/groupnorm.h"

namespace invar::ops::groupnorm {

Geometry geometry(const Call& call) {
  const View& x = call.in[0];
  Geometry g{GroupnormAttributes(call).groups, 0, 1};
  g.channels = x.dim[1] / g.groups;
  for (int i = 2; i < x.rank; ++i) g.spatial *= x.dim[i];
  return g;
}

int64_t units(const Call& call, int) {
  return call.in[0].dim[0] * GroupnormAttributes(call).groups;
}

}  // namespace invar::ops::groupnorm
