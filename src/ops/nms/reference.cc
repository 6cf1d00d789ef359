// spec: nms.1 - nms.7.
#include "kernels/reference.h"

#include "kernels/check.h"
#include "ops/nms/nms.h"

namespace invar::ops {
namespace {

// nms.2
struct Box {
  float x1, y1, x2, y2, area;
};
Box box_of(const float* b, bool centred) {
  Box r = {std::fmin(b[1], b[3]), std::fmin(b[0], b[2]), std::fmax(b[1], b[3]), std::fmax(b[0], b[2]), 0};
  if (centred) {
    const float w = b[2] / 2, h = b[3] / 2;
    r = {b[0] - w, b[1] - h, b[0] + w, b[1] + h, 0};
  }
  const float w = r.x2 - r.x1, h = r.y2 - r.y1;
  r.area = w * h;
  return r;
}

// nms.5
bool overlap(const Box& a, const Box& b, float threshold) {
  const float w = std::fmin(a.x2, b.x2) - std::fmax(a.x1, b.x1);
  const float h = std::fmin(a.y2, b.y2) - std::fmax(a.y1, b.y1);
  const float c = w * h;
  const float both = a.area + b.area, u = both - c;
  return w > 0 && h > 0 && c > 0 && c / u > threshold;
}

// nms.3: whether a comes before b.
bool precedes(const float* score, int64_t a, int64_t b) {
  const float p = score[a], q = score[b];
  if (p != p || q != q) return p == p || (q != q && a < b);
  return p > q || (p == q && a < b);
}

void nms(const Call& call, int, int64_t begin, int64_t end, void*) {
  const NmsShape s = nms_shape(call);
  const float threshold = *call.in[3].as<const float>();
  const float* least = call.in.size() > 4 ? call.in[4].as<const float>() : nullptr;
  int64_t most = *call.in[2].as<const int64_t>();
  if (most > s.k) most = s.k;
  for (int64_t u = begin; u < end; ++u) {
    const float* boxes = call.in[0].as<const float>() + u / s.classes * s.n * 4;
    const float* score = call.in[1].as<const float>() + u * s.n;
    int64_t* out = call.out[0].as<int64_t>() + u * s.k;
    int64_t taken = 0;
    // Each next candidate is the first after the previous one.
    for (int64_t last = -1; taken < most;) {
      int64_t next = -1;
      for (int64_t i = 0; i < s.n; ++i)
        if ((!least || score[i] > *least) && (last < 0 || precedes(score, last, i)) &&
            (next < 0 || precedes(score, i, next)))
          next = i;
      if (next < 0) break;
      const Box box = box_of(boxes + next * 4, s.centred);
      bool suppressed = false;
      for (int64_t j = 0; j < taken && !suppressed; ++j)
        suppressed = overlap(box, box_of(boxes + out[j] * 4, s.centred), threshold);
      if (!suppressed) out[taken++] = next;
      last = next;
    }
    for (; taken < s.k; ++taken) out[taken] = -1;
  }
}

bool one(const View& v, DType type) {
  return v.dtype == type && v.rank <= 1 && v.elements() == 1;
}

const char* check(const Call& c) {
  if ((c.in.size() != 4 && c.in.size() != 5) || c.out.size() != 1)
    return "four or five operands and a result";
  const View &boxes = c.in[0], &scores = c.in[1], &out = c.out[0];
  if (!is_f32(boxes) || !is_f32(scores) || out.dtype != DType::i64) return "f32 operands and an i64 result";
  if (boxes.rank != 3 || boxes.dim[2] != 4) return "boxes of four numbers";
  if (scores.rank != 3 || scores.dim[0] != boxes.dim[0] || scores.dim[2] != boxes.dim[1])
    return "a score of every class for each box";
  if (!one(c.in[2], DType::i64) || !one(c.in[3], DType::f32) ||
      (c.in.size() > 4 && !one(c.in[4], DType::f32)))
    return "limits of one element: i64, f32, f32";
  const int64_t centred = NmsAttributes(c).center_point_box;
  if (centred != 0 && centred != 1) return "center_point_box of 0 or 1";
  if (out.rank != 3 || !same_leading(out, scores, 2) || out.dim[2] > scores.dim[2])
    return "a result of at most all boxes for every batch and class";
  return scores.dim[2] <= INT32_MAX ? nullptr : "fewer than 2^31 boxes";
}

bool batch_independent(const Call&, uint64_t batched) {
  return batched == 3;
}

}  // namespace

extern const OpContract contract_nms;
extern const CpuKernel row_nms_reference;
const OpContract contract_nms = {.op = "nms", .check = check, .batch_independent = batch_independent};
const CpuKernel row_nms_reference = {.op = "nms", .isa = "reference", .units = nms_units, .run = nms};

}  // namespace invar::ops
