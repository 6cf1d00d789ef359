// Reductions: the nest of dimensions, the partition of work, and scratch.
#include <algorithm>

#include "kernels/norm_gradients.h"
#include "num/reduce/columns.h"
#include "ops/reduce/reduce.h"

namespace invar::ops {
namespace {

constexpr int64_t kUnits = 64;  // enough for load balance over many threads
constexpr int64_t kBlocks = 16;
constexpr int64_t kUnitFloats = 16384;  // a unit is worth scheduling on another thread

int64_t div_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

bool holds(const IntegerList& axes, int axis) {
  for (int64_t i = 0; i < axes.size; ++i)
    if (axes[i] == axis) return true;
  return axes.absent();
}

}  // namespace

extern constexpr std::string_view kSumOperation = "reduce_sum";

bool sums_leading_axes(const Call& call, int count) {
  const IntegerList axes = ReduceSumAttributes(call).axes;
  for (int64_t i = 0; i < axes.size; ++i)
    if (axes[i] != i) return false;
  return count > 0 && (axes.absent() ? call.in[0].rank : axes.size) == count;
}

bool is_reduced(const Call& call, int axis) {
  return holds(ReduceSumAttributes(call).axes, axis);
}

const char* check_axes(const Call& call) {
  const IntegerList axes = ReduceSumAttributes(call).axes;
  for (int64_t i = 0; i < axes.size; ++i)
    if (axes[i] < 0 || axes[i] >= call.in[0].rank || (i > 0 && axes[i] <= axes[i - 1]))
      return "ascending axes of the operand";
  return nullptr;
}

Reduction reduction_of(const Call& call) {
  const View& x = call.in[0];
  const IntegerList axes = ReduceSumAttributes(call).axes;
  Reduction r{};
  r.n = r.outputs = 1;
  StridedDims reduced, kept;  // innermost first
  int64_t stride = 1;
  int last = -1;  // whether the previous dimension was reduced
  for (int i = x.rank - 1; i >= 0; --i) {
    bool yes = holds(axes, i);
    (yes ? r.n : r.outputs) *= x.dim[i];
    if (x.dim[i] != 1) {
      StridedDims& d = yes ? reduced : kept;
      if (last == yes) {
        d.dim[d.count - 1] *= x.dim[i];
      } else {
        d.dim[d.count] = x.dim[i], d.stride[d.count] = stride;
        ++d.count;
      }
      if (last < 0) r.columnwise = !yes;
      last = yes;
    }
    stride *= x.dim[i];
  }
  r.inner = 1;
  if (r.columnwise) {
    r.inner = kept.dim[0];
    --kept.count;
    std::copy(kept.dim + 1, kept.dim + 1 + kept.count, kept.dim);
    std::copy(kept.stride + 1, kept.stride + 1 + kept.count, kept.stride);
  }
  for (auto [from, to] : {std::pair(&reduced, &r.reduced), std::pair(&kept, &r.kept)}) {
    to->count = from->count;
    std::reverse_copy(from->dim, from->dim + from->count, to->dim);
    std::reverse_copy(from->stride, from->stride + from->count, to->stride);
  }
  r.outer = r.inner ? r.outputs / r.inner : 0;
  r.segments = div_up(r.n, num::kRowSegment);
  r.width = r.rows = 1;
  if (r.columnwise) {
    r.dense =
        r.inner <= num::portable::kDenseColumns && r.reduced.count == 1 && r.reduced.stride[0] == r.inner;
    r.width = std::min(r.inner, r.dense ? num::portable::kDenseColumns : num::portable::kWideColumns);
    // Narrower blocks if they give work to more threads; a few cache lines at least.
    while (!r.dense && r.width >= 256 && r.n * r.width > 2 * kUnitFloats &&
           r.outer * div_up(r.inner, r.width) * r.segments < kBlocks)
      r.width = r.width / 2 / 16 * 16;
    r.blocks = div_up(r.inner, std::max<int64_t>(r.width, 1));
    r.split = r.segments > 1 && r.outer * r.blocks < kUnits;
  } else {
    r.rows = std::clamp<int64_t>(kUnitFloats / std::max<int64_t>(r.n, 1), 1, std::max<int64_t>(r.outputs, 1));
    r.blocks = div_up(r.outputs, r.rows);
    r.split = r.segments > 1 && r.blocks < kUnits;
  }
  return r;
}

// Phase 0: segments, or whole rows; phase 1: joins the split rows.
int64_t reduce_units(const Call& call, int phase) {
  Reduction r = reduction_of(call);
  if (phase == 1) return r.split ? div_up(r.outputs, kChunk) : 0;
  int64_t blocks = r.columnwise ? r.outer * r.blocks : r.blocks;
  return r.split ? (r.columnwise ? blocks : r.outputs) * r.segments : blocks;
}

// The units of a reduction around a center, such as a maximum. If rows are split, the phases of
// reduce_units() run twice, and the first time computes the center.
int64_t centred_units(const Call& call, int phase) {
  if (phase < 2 && !reduction_of(call).split) return 0;
  return reduce_units(call, phase % 2);
}

// The lane matrix, totals and centres of the columns; or one gathered segment. Enough for an
// integer of any size per column.
size_t reduce_scratch(const Call& call) {
  Reduction r = reduction_of(call);
  int64_t work = r.dense ? num::kRowLanes : num::portable::kWideBuffers;
  int64_t floats = r.columnwise ? (work + 2) * r.width : num::kRowSegment;
  return static_cast<size_t>(floats + 64) * sizeof(float);
}

// Segment results [segment][output], and centres.
size_t reduce_shared(const Call& call) {
  Reduction r = reduction_of(call);
  size_t size = std::max(size_of(call.in[0].dtype), sizeof(float));
  return r.split ? static_cast<size_t>((r.segments + 1) * r.outputs) * size : 0;
}

ColumnBlocks arg_columns(const Call& call) {
  return column_blocks(axis_extents(call.in[0], ArgmaxAttributes(call).axis), kArgColumns, 32, kUnits);
}

int64_t arg_units(const Call& call, int) {
  ColumnBlocks a = arg_columns(call);
  return a.outer * a.blocks;
}

}  // namespace invar::ops
