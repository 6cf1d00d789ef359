#include <algorithm>

#include "num/reduce/columns.h"
#include "ops/softmax/softmax.h"

namespace invar::ops {

SoftmaxShape softmax_shape(const Call& call) {
  const View& x = call.in[0];
  int64_t axis = attr_i(call, "axis", -1);
  if (axis < 0) axis += x.rank;
  SoftmaxShape s{1, x.dim[axis], 1, 0, 0};
  for (int i = 0; i < axis; ++i) s.outer *= x.dim[i];
  for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) s.inner *= x.dim[i];
  // A block of columns is read, written and summed while it lies in a second-level cache; lines of memory are whole.
  constexpr int64_t kBlockFloats = 32768;
  s.width = std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(s.n, 1) / 16 * 16, 64,
                                num::portable::kWideColumns);
  s.width = std::min(s.width, s.inner);
  s.blocks = s.width ? (s.inner + s.width - 1) / s.width : 0;
  return s;
}

int64_t softmax_units(const Call& call, int) {
  SoftmaxShape s = softmax_shape(call);
  return s.outer * s.blocks;
}

size_t softmax_scratch(const Call& call) {
  SoftmaxShape s = softmax_shape(call);
  if (s.inner == 1) return 0;
  return static_cast<size_t>((num::portable::kWideBuffers + 2) * s.width) * sizeof(float);
}

}  // namespace invar::ops
