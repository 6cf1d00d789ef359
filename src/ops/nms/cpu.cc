// CPU nms: candidates are sorted by key; selected boxes are stored as a structure of arrays, so
// that a candidate is compared with a vector of them at a time.
#include "kernels/cpu/row_sort.h"
#include "kernels/cpu/vector_io.h"
#include "ops/nms/nms.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

static_assert(kW <= kNmsLanes);

// Selected boxes, padded to whole vectors; the padding overlaps nothing.
struct SelectedBoxes {
  float *x1, *y1, *x2, *y2, *area;
};

INVAR_INLINE void append(const SelectedBoxes& s, int64_t count, const NmsBox& box) {
  if (count % kW == 0) {
    store(s.x1 + count, set1(__builtin_inff())), store(s.x2 + count, set1(-__builtin_inff()));
    for (float* row : {s.y1, s.y2, s.area}) store(row + count, zero());
  }
  s.x1[count] = box.x1, s.y1[count] = box.y1, s.x2[count] = box.x2, s.y2[count] = box.y2;
  s.area[count] = box.area;
}

// nms.5 against any of them. Few boxes intersect, so the division is behind a branch.
INVAR_INTERNAL bool suppressed(const SelectedBoxes& s, int64_t count, const NmsBox& box, float overlap) {
  const F x1 = set1(box.x1), y1 = set1(box.y1), x2 = set1(box.x2), y2 = set1(box.y2), area = set1(box.area);
  for (int64_t i = 0; i < count; i += kW) {
    const F w = sub(smaller(x2, load(s.x2 + i)), larger(x1, load(s.x1 + i)));
    const F h = sub(smaller(y2, load(s.y2 + i)), larger(y1, load(s.y1 + i)));
    const M meet = both(lt(zero(), w), lt(zero(), h));
    if (!any(meet)) continue;
    const F c = mul(w, h), u = sub(add(area, load(s.area + i)), c);
    if (any(both(both(meet, lt(zero(), c)), lt(set1(overlap), div(c, u))))) return true;
  }
  return false;
}

// Collects the candidates of n scores; least: null if all are.
INVAR_INTERNAL int64_t candidates(const float* score, int64_t n, const float* least, uint64_t* pairs) {
  int64_t m = 0;
  if (!least) {
    for (; m < n; ++m) pairs[m] = key_index_pair(nms_key(score[m]), m);
    return m;
  }
  // Nearly always no lane of a vector passes.
  const F limit = set1(*least);
  for (int64_t i = 0; i < n; i += kW) {
    const int lanes = n - i < kW ? static_cast<int>(n - i) : kW;
    if (lanes == kW && !any(lt(limit, load(score + i)))) continue;
    for (int64_t j = i; j < i + lanes; ++j)
      if (score[j] > *least) pairs[m++] = key_index_pair(nms_key(score[j]), j);
  }
  return m;
}

void nms(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const NmsShape s = nms_shape(call);
  const float overlap = *call.in[3].as<const float>();
  const float* least = call.in.size() > 4 ? call.in[4].as<const float>() : nullptr;
  const int64_t wanted = *call.in[2].as<const int64_t>(), most = wanted < s.k ? wanted : s.k;
  auto* pairs = static_cast<uint64_t*>(scratch);
  uint64_t* other = pairs + s.n;
  auto* rows = reinterpret_cast<float*>(other + s.n);
  const int64_t row = s.k + kNmsLanes;
  const SelectedBoxes selected = {rows, rows + row, rows + 2 * row, rows + 3 * row, rows + 4 * row};
  for (int64_t u = begin; u < end; ++u) {
    const float* boxes = call.in[0].as<const float>() + u / s.classes * s.n * 4;
    int64_t* out = call.out[0].as<int64_t>() + u * s.k;
    int64_t taken = 0;
    if (most > 0) {
      const int64_t m = candidates(call.in[1].as<const float>() + u * s.n, s.n, least, pairs);
      const uint64_t* sorted = sort_pairs(pairs, other, m);
      for (int64_t i = 0; i < m && taken < most; ++i) {
        const auto index = static_cast<int64_t>(sorted[i] & 0xffffffff);
        const NmsBox box = nms_box(boxes + index * 4, s.centred);
        if (suppressed(selected, taken, box, overlap)) continue;
        append(selected, taken, box);
        out[taken++] = index;
      }
    }
    for (; taken < s.k; ++taken) out[taken] = -1;
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "nms",
                             .isa = INVAR_ISA,
                             .units = nms_units,
                             .run = INVAR_ISA_NS::nms,
                             .scratch_bytes = nms_scratch};

}  // namespace invar::ops
