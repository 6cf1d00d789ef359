// Pools: windows over the spatial axes of each channel (spec.md pool.2).
#pragma once
#include "kernels/sliding_window.h"

namespace invar::ops::pool {

using slide::Axis;
using slide::kAxes;

struct Plan {
  int64_t images, channels;
  Axis axis[kAxes];
  int64_t taps;
  slide::BlockCut cut;  // no floats: windows too large for a copy, or mostly outside of the operand
};
Plan plan_of(const Call&);
// Whether windows are small enough for a row that takes channels last.
bool takes_channels_last(const Attrs&);
// Null, or what is wrong with a call.
const char* check(const Call&);

// In integers of 64 bits, or of 32 on a GPU where they do. Dilations are mostly 1, and divisions slow.
template <class A, class I>
INVAR_INLINE I hops(const A& a, I n) {
  return a.dilation == 1 ? n : n / a.dilation + (n % a.dilation > 0);
}
// How many places of output o's window lie within the operand, or (padded) within its pads as well.
template <class A, class I>
INVAR_INLINE I places(const A& a, I o, bool padded) {
  const I low = padded ? -a.pad : 0, high = padded ? a.in + a.end_pad : a.in, first = o * a.stride - a.pad;
  const I begin = first < low ? hops(a, low - first) : 0;
  I end = first >= high ? 0 : hops(a, high - first);
  if (end > a.kernel) end = a.kernel;
  return end > begin ? end - begin : 0;
}
// The first tap of output o's window that lies within the operand, where any does.
template <class A, class I>
INVAR_INLINE I first_inside(const A& a, I o) {
  const I first = o * a.stride - a.pad;
  return first < 0 ? hops(a, -first) : 0;
}

}  // namespace invar::ops::pool
