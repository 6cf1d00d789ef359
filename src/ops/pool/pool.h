// Pooling: windows over the spatial axes of each channel (pool.2).
#pragma once
#include "kernels/sliding_window.h"
#include "ops/pool/attributes.h"

namespace invar::ops::pool {

using slide::Axis;
using slide::kAxes;

struct PoolGeometry {
  int64_t images, channels;
  Axis axis[kAxes];
  int64_t taps;
  slide::BlockTiling tiling;  // no floats: windows too large for a copy, or mostly padding
};
PoolGeometry geometry_of(const Call&);
// Tells whether windows are small enough for a row with NHWC operands.
bool takes_channels_last(const Attributes&);
// Null, or why a call is invalid.
const char* check(const Call&);

// Counts in 64-bit integers, or in 32-bit ones on a GPU if they suffice. Dilations are mostly 1,
// and divisions slow.
template <class A, class I>
INVAR_INLINE I ceil_taps(const A& a, I n) {
  return a.dilation == 1 ? n : n / a.dilation + (n % a.dilation > 0);
}
// The number of taps of output o that are inside the operand. With `padded`, those in its padding
// count, too.
template <class A, class I>
INVAR_INLINE I taps_inside(const A& a, I o, bool padded) {
  const I low = padded ? -a.pad : 0, high = padded ? a.in + a.end_pad : a.in, first = o * a.stride - a.pad;
  const I begin = first < low ? ceil_taps(a, low - first) : 0;
  I end = first >= high ? 0 : ceil_taps(a, high - first);
  if (end > a.kernel) end = a.kernel;
  return end > begin ? end - begin : 0;
}
// The first tap of output o's window inside the operand, if any is.
template <class A, class I>
INVAR_INLINE I first_tap_inside(const A& a, I o) {
  const I first = o * a.stride - a.pad;
  return first < 0 ? ceil_taps(a, -first) : 0;
}

}  // namespace invar::ops::pool
