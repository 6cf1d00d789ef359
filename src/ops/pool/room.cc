// Pooling: geometry, and the check of a call.
#include "ops/pool/pool.h"

#include <algorithm>

#include "kernels/check.h"

namespace invar::ops::pool {

// Says if the windows are mostly padding and so large that per-output work is cheaper than copying
// the padding.
static bool mostly_padding(const PoolGeometry& p) {
  constexpr int64_t kVector = 8,
                    kOutput = 8;  // taps of a tile in the time of one element; elements in that of an output
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t times = 1;  // at least as many taps as elements
  for (const Axis& a : p.axis) {
    const int64_t windows =
        std::min(a.out, (a.kernel - 1) * a.dilation / a.stride + 1);  // per element, at most
    const int64_t more = a.out / std::max<int64_t>(windows, 1) * a.kernel / std::max<int64_t>(a.in, 1);
    times = std::min(times, kMost) * std::clamp<int64_t>(more, 1, kMost);
  }
  return p.taps > kVector * (p.taps / times + kOutput);
}

PoolGeometry geometry_of(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  PoolGeometry p{};
  p.images = x.dim[0], p.channels = x.dim[1];
  p.taps = 1;
  const int axes = x.rank - 2;
  const MaxPoolAttributes attrs(call);  // those of every pool
  const slide::Window window{attrs.strides, attrs.dilations, attrs.pads};
  for (int i = 0; i < axes; ++i) {
    p.axis[kAxes - axes + i] = slide::axis_of(window, i, axes, attrs.kernel[i], false);
    p.taps *= attrs.kernel[i];
  }
  slide::fit_axes(x, out, p.axis);
  if (!mostly_padding(p)) p.tiling = slide::block_tiling(p.axis, p.images, p.channels);
  return p;
}

bool takes_channels_last(const Attributes& attrs) {
  constexpr int64_t kMostTaps = 128;
  const IntegerList kernel = MaxPoolAttributes(attrs).kernel;
  if (kernel.absent()) return false;
  int64_t taps = 1;
  for (int64_t i = 0; i < kernel.size; ++i)
    if (kernel[i] < 1 || kernel[i] > kMostTaps || (taps *= kernel[i]) > kMostTaps) return false;
  return true;
}

const char* check(const Call& c) {
  if (!has_operands(c, 1, 1) || !is_f32(c.in[0])) return "one f32 operand and one result";
  const View &x = c.in[0], &out = c.out[0];
  const MaxPoolAttributes attrs(c);
  const slide::Window window{attrs.strides, attrs.dilations, attrs.pads};
  if (const char* wrong = slide::check_lists(x, window)) return wrong;
  const int axes = x.rank - 2;
  if (attrs.kernel.size != axes) return "a kernel for each spatial dimension";
  if (!same_leading(x, out, 2) || out.rank != x.rank) return "a result [N, C, ...] of the operand's rank";
  int64_t taps = 1;
  for (int i = 0; i < axes; ++i) {
    const int64_t kernel = attrs.kernel[i];
    if (const char* wrong = slide::check_axis(x, window, i, kernel)) return wrong;
    const Axis a = slide::axis_of(window, i, axes, kernel, false);
    if (a.pad < 0 || a.end_pad < 0) return "pads of 0 and more";
    if (!slide::within(taps, kernel) || taps >= int64_t{1} << 24) return "windows of fewer than 2^24 places";
    const int64_t free = a.pad + a.end_pad - (kernel - 1) * a.dilation - 1 + x.dim[2 + i];
    const int64_t down = free < 0 ? 0 : free / a.stride + 1;
    int64_t up = free <= -a.stride ? 0 : (free + a.stride - 1) / a.stride + 1;
    if (up > 0 && (up - 1) * a.stride >= x.dim[2 + i] + a.pad) --up;
    if (out.dim[2 + i] != down && out.dim[2 + i] != up)
      return "spatial dimensions of the result that follow from the settings";
  }
  if (!slide::within(x) || !slide::within(out)) return "shapes that memory could hold";
  return nullptr;
}

}  // namespace invar::ops::pool
