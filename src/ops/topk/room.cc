// The shape, work units and scratch of topk.
#include "ops/topk/topk.h"

namespace invar::ops {

TopkShape topk_shape(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  const TopkAttributes a(call);
  return {axis_extents(x, a.axis), axis_extents(out, a.axis).n, a.largest != 0};
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
