#include "ops/topk/topk.h"

namespace invar::ops {

TopkShape topk_shape(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  int64_t axis = attr_i(call, "axis", -1);
  if (axis < 0) axis += x.rank;
  TopkShape s{1, x.dim[axis], 1, out.dim[axis], attr_i(call, "largest", 1) != 0};
  for (int i = 0; i < axis; ++i) s.outer *= x.dim[i];
  for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) s.inner *= x.dim[i];
  return s;
}

int64_t topk_units(const Call& call, int) {
  TopkShape s = topk_shape(call);
  return s.k ? s.outer * s.inner : 0;
}

// Keys of a row, and pairs (key, index) twice.
size_t topk_scratch(const Call& call) {
  return static_cast<size_t>(topk_shape(call).n) * 20 + 64;
}

}  // namespace invar::ops
