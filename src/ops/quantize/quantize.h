// The layout of scales and zero points over the elements of a tensor: quantize.2. Used by
// every row of the room.
#pragma once
#include "kernels/call.h"
#include "num/inline.h"
#include "ops/quantize/attributes.h"

namespace invar::ops {

// The tensor as [outer, n, inner] around the axis. block = 0: one scale for all, or (by_axis) one
// per index of the axis. Else one per `block` indices, `blocks` in total, and per index of outer
// and inner.
struct ScaleLayout {
  int64_t n, inner, block, blocks;
  bool by_axis;
};
ScaleLayout scale_layout(const Call&);

// Elements up to `end` share scale `at`, or, with `each`, use scale `at` and its successors.
struct ScaleRun {
  int64_t end, at;
  bool each;
};
INVAR_INLINE ScaleRun scale_run_at(const ScaleLayout& g, int64_t i, int64_t size) {
  if (!g.block && !g.by_axis) return {size, 0, false};
  const int64_t row = i / g.inner, column = i % g.inner, k = row % g.n, outer = row / g.n;
  const int64_t end = g.inner > 1 ? (row + 1) * g.inner : (outer + 1) * g.n;
  if (!g.block) return {end, k, g.inner == 1};
  const int64_t at = (outer * g.blocks + k / g.block) * g.inner + column;
  if (g.inner > 1) return {end, at, true};
  const int64_t next = outer * g.n + (k / g.block + 1) * g.block;
  return {next < end ? next : end, at, false};
}

}  // namespace invar::ops
