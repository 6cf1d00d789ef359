#include "ops/topk/topk.h"

namespace invar::ops {

TopkShape topk_shape(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  int64_t axis = attr_i(call, "axis", -1);
  return {axis_of(x, axis), axis_of(out, axis).n, attr_i(call, "largest", 1) != 0};
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
