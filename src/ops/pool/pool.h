// Pools: windows over the spatial axes of each channel (spec.md pool.2).
#pragma once
#include "ops/slide.h"

namespace invar::ops::pool {

using slide::Axis;
using slide::kAxes;

struct Plan {
  int64_t images, channels;
  Axis axis[kAxes];
  int64_t taps;
  slide::BlockCut cut;  // no floats: windows too large for a copy
};
Plan plan_of(const Call&);
// Null, or what is wrong with a call.
const char* check(const Call&);

// How many places of output o's window lie within the operand, or (padded) within its pads as well.
INVAR_INLINE int64_t places(const Axis& a, int64_t o, bool padded) {
  const int64_t low = padded ? -a.pad : 0, high = padded ? a.in + a.end_pad : a.in,
                first = o * a.stride - a.pad;
  const int64_t begin = first < low ? slide::ceil_div(low - first, a.dilation) : 0;
  const int64_t end = first >= high ? 0 : num::min_i64(slide::ceil_div(high - first, a.dilation), a.kernel);
  return end > begin ? end - begin : 0;
}
// The first tap of output o's window that lies within the operand, where any does.
INVAR_INLINE int64_t first_inside(const Axis& a, int64_t o) {
  const int64_t first = o * a.stride - a.pad;
  return first < 0 ? slide::ceil_div(-first, a.dilation) : 0;
}

}  // namespace invar::ops::pool
