// The shape, sort key and boxes of nms, shared by all rows.
#pragma once
#include "kernels/call.h"
#include "kernels/float_order.h"
#include "ops/nms/attributes.h"

namespace invar::ops {

struct NmsShape {
  int64_t batches, classes, n, k;
  bool centred;
};
NmsShape nms_shape(const Call&);
int64_t nms_units(const Call&, int phase);  // one per batch and class
size_t nms_scratch(const Call&);

// Sort key: ascending keys are the order of candidates (nms.3).
INVAR_INLINE uint32_t nms_key(float score) {
  return score == score ? ~order_key(score) : 0xffffffff;
}

// nms.2
struct NmsBox {
  float x1, y1, x2, y2, area;
};
INVAR_INLINE NmsBox nms_box(const float* b, bool centred) {
  NmsBox box;
  if (centred) {
    const float w = b[2] * 0.5f, h = b[3] * 0.5f;
    box = {b[0] - w, b[1] - h, b[0] + w, b[1] + h, 0};
  } else {
    const bool x = b[1] < b[3], y = b[0] < b[2];
    box = {x ? b[1] : b[3], y ? b[0] : b[2], x ? b[3] : b[1], y ? b[2] : b[0], 0};
  }
  const float width = box.x2 - box.x1, height = box.y2 - box.y1;
  box.area = width * height;
  return box;
}

// Lanes of the widest vector (num/lane).
inline constexpr int kNmsLanes = 16;

}  // namespace invar::ops
