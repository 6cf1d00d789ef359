// The shape of causal convolutions and the size of their state.
#include "ops/causal_conv/causal_conv.h"

namespace invar::ops::causal_conv {

Geometry geometry(const Call& call) {
  const View &x = call.in[0], &w = call.in[1];
  return {x.dim[0], x.dim[1], x.dim[2], w.dim[1]};
}

size_t state_bytes(const Call& call, int64_t) {
  const Geometry g = geometry(call);
  return g.width > 1 ? static_cast<size_t>(g.width * g.channels) * sizeof(float) : 0;
}

}  // namespace invar::ops::causal_conv
