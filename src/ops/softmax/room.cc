// Work units and scratch of softmax and log_softmax.
#include <algorithm>

#include "num/reduce/columns.h"
#include "ops/softmax/softmax.h"

namespace invar::ops {

ColumnBlocks softmax_columns(const Call& call) {
  const AxisExtents a = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  // A block of columns is read, written and summed while it is in the L2 cache; cache lines are
  // whole.
  constexpr int64_t kBlockFloats = 32768;
  return column_blocks(a, std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(a.n, 1) / 16 * 16, 64,
                                              num::portable::kWideColumns));
}

int64_t softmax_segments(const Call& call) {
  constexpr int64_t kFewRows = 16, kSegments = 4;
  const AxisExtents a = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  const int64_t segments = (a.n + num::kRowSegment - 1) / num::kRowSegment;
  return a.inner == 1 && a.outer < kFewRows && segments >= kSegments ? segments : 0;
}

int64_t softmax_units(const Call& call, int phase) {
  const ColumnBlocks s = softmax_columns(call);
  const int64_t segments = softmax_segments(call);
  if (phase > 0 && !segments) return 0;
  return s.outer * (segments ? segments : s.blocks);
}

int64_t softmax_backward_units(const Call& call, int) {
  const ColumnBlocks s = softmax_columns(call);
  return s.outer * s.blocks;
}

int64_t cross_entropy_units(const Call& call, int) {
  return call.in[call.in.size() - 1].dim[0];
}

// The maximum and the sum of each segment.
size_t softmax_shared(const Call& call) {
  const int64_t units = softmax_columns(call).outer * softmax_segments(call);
  return static_cast<size_t>(2 * units) * sizeof(float);
}

size_t softmax_scratch(const Call& call) {
  ColumnBlocks s = softmax_columns(call);
  if (s.inner == 1) return 0;
  return static_cast<size_t>((num::portable::kWideBuffers + 2) * s.width) * sizeof(float);
}

}  // namespace invar::ops
