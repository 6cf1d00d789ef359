// The shape, work units and scratch of nms.
#include "ops/nms/nms.h"

namespace invar::ops {

NmsShape nms_shape(const Call& call) {
  const View &scores = call.in[1], &out = call.out[0];
  return {scores.dim[0], scores.dim[1], scores.dim[2], out.dim[2], NmsAttributes(call).center_point_box != 0};
}

int64_t nms_units(const Call& call, int) {
  const NmsShape s = nms_shape(call);
  return s.k ? s.batches * s.classes : 0;
}

// Two buffers of (key, index) pairs; five floats per selected box, padded to whole vectors.
size_t nms_scratch(const Call& call) {
  const NmsShape s = nms_shape(call);
  return static_cast<size_t>(s.n) * 16 + static_cast<size_t>(s.k + kNmsLanes) * 20 + 64;
}

}  // namespace invar::ops
