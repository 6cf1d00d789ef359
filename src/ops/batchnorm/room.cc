// The shape and the work units of batchnorm.
#include "ops/batchnorm/batchnorm.h"

namespace invar::ops::batchnorm {

Geometry geometry(const Call& call) {
  const View& x = call.in[0];
  Geometry g{x.dim[1], 1};
  for (int i = 2; i < x.rank; ++i) g.spatial *= x.dim[i];
  return g;
}

int64_t units(const Call& call, int) {
  Geometry g = geometry(call);
  return g.spatial == 1 ? call.in[0].dim[0] : call.in[0].dim[0] * g.channels;
}

}  // namespace invar::ops::batchnorm
