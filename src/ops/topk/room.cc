// The shape, work units and scratch of topk.
#include "ops/topk/topk.h"

namespace invar::ops {

TopkShape topk_shape(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  int64_t axis = attr_i(call, "axis", -1);
  return {axis_extents(x, axis), axis_extents(out, axis).n, attr_i(call, "largest", 1) != 0};
}

int64_t topk_units(const Call& call, int) {
  TopkShape s = topk_shape(call);
  return s.k ? s.outer * s.inner : 0;
}

// The keys of a row, and two buffers of (key, index) pairs.
size_t topk_scratch(const Call& call) {
  return static_cast<size_t>(topk_shape(call).n) * 20 + 64;
}

}  // namespace invar::ops
