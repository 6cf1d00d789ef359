// Checks the attributes of sliding windows, and tiles their outputs.
#include "kernels/sliding_window.h"

#include <algorithm>

namespace invar::ops::slide {

Axis axis_of(const Window& w, int i, int axes, int64_t kernel, bool transposed) {
  Axis a;
  a.kernel = kernel;
  a.stride = w.strides[i];
  a.dilation = w.dilations[i];
  a.pad = w.pads[i];
  a.end_pad = w.pads[axes + i];
  a.transposed = transposed;
  derive_axis(a);
  return a;
}

void derive_axis(Axis& a) {
  const int64_t period = a.stride / gcd(a.stride, a.dilation);
  if (!a.transposed) {
    a.planes = std::min(a.kernel, period);
    a.length = a.out + (a.kernel - 1) * a.dilation / a.stride;
    a.low = -a.pad;
    return;
  }
  a.hop = period;
  a.classes = std::min(a.kernel, period);
  // Output 0, or the first output after it that tap r hits, reads element ceil((pad - r * dilation)
  // / stride).
  auto first = [&](int64_t r) {
    const int64_t n = a.pad - r * a.dilation;
    return n >= 0 ? ceil_div(n, a.stride) : -(-n / a.stride);
  };
  a.low = first(a.kernel - 1);
  a.length = first(0) + ceil_div(a.out, a.stride) - a.low;
}

void fit_axes(const View& x, const View& out, Axis (&axis)[kAxes]) {
  for (int d = 2; d < x.rank; ++d) {
    Axis& a = axis[kAxes - x.rank + d];
    a.in = x.dim[d], a.out = out.dim[d];
  }
  for (int round = 0; round + 1 < kAxes; ++round) {
    const Axis last = axis[kAxes - 1];
    Axis& a = axis[kAxes - 2];
    const bool carried = last.kernel == 1 && last.stride == 1 && last.pad == 0 && last.out == last.in;
    if (!carried || (a.stride != 1 && last.in != 1)) break;
    for (int64_t* n : {&a.in, &a.out, &a.dilation, &a.pad, &a.end_pad}) *n *= last.in;
    for (int d = kAxes - 1; d > 0; --d) axis[d] = axis[d - 1];
    axis[0] = Axis();
    axis[0].transposed = a.transposed;
  }
  for (Axis& a : axis) derive_axis(a);
}

bool within(int64_t& n, int64_t by) {
  if (by < 0 || (by > 0 && n > kMostElements / by)) return false;
  n *= by;
  return true;
}

bool within(const View& v) {
  int64_t n = 1;
  for (int i = 0; i < v.rank; ++i)
    if (!within(n, std::max<int64_t>(v.dim[i], 1))) return false;
  return true;
}

const char* check_lists(const View& x, const Window& w) {
  if (x.rank < 3 || x.rank > 2 + kAxes) return "one to three spatial dimensions behind batch and channels";
  if (!w.strides.fits(x.rank - 2) || !w.dilations.fits(x.rank - 2))
    return "strides and dilations for each spatial dimension";
  return w.pads.fits(2 * (x.rank - 2)) ? nullptr
                                       : "pads at the begin, then at the end, of each spatial dimension";
}

const char* check_axis(const View& x, const Window& w, int i, int64_t kernel) {
  if (x.dim[2 + i] > kMostSetting) return "spatial dimensions of at most 2^30";
  for (int64_t n : {kernel, w.strides[i], w.dilations[i]})
    if (n < 1 || n > kMostSetting) return "kernels, strides and dilations from 1 to 2^30";
  for (int64_t n : {w.pads[i], w.pads[x.rank - 2 + i]})
    if (n < -kMostSetting || n > kMostSetting) return "pads of at most 2^30";
  return nullptr;
}

BlockTiling block_tiling(const Axis (&axis)[kAxes], int64_t images, int64_t channels) {
  constexpr int64_t kElements = 4096;          // elements per tile, about: it stays in the L1 cache
  constexpr int64_t kMost = int64_t{1} << 18;  // limit of its copy
  constexpr int64_t kUnits = 32;               // enough for load balance
  BlockTiling c{};
  const Axis &deep = axis[0], &high = axis[1], &wide = axis[2];
  if (deep.out == 0 || high.out == 0 || wide.out == 0) return c;
  auto extent = [](const Axis& a) { return (taps_of(a, 0) - 1) * a.hop * a.dilation / a.stride; };
  if (extent(wide) > kMost || extent(high) > kMost || deep.kernel > kMost) return c;
  const int64_t rows = phase_of(high, 0).count, columns = phase_of(wide, 0).count;
  c.deep = phase_of(deep, 0).count;
  c.columns = std::min<int64_t>(columns, 1024);
  c.pitch = c.columns + extent(wide);
  c.rows = std::clamp<int64_t>(kElements / c.pitch, 1, rows);
  c.row_blocks = ceil_div(rows, c.rows), c.column_blocks = ceil_div(columns, c.columns);
  c.lines = c.rows + extent(high);
  c.floats = 1;
  for (int64_t n : {taps_of(deep, 0), high.planes, wide.planes, c.lines, c.pitch})
    if (!within(c.floats, n) || c.floats > kMost) return BlockTiling{};
  const int64_t blocks = images * c.deep * c.row_blocks * c.column_blocks;
  c.each = std::clamp<int64_t>(kElements / (c.rows * c.columns), 1,
                               std::max<int64_t>(channels * blocks / kUnits, 1));
  c.each = std::clamp<int64_t>(c.each, 1, std::max<int64_t>(channels, 1));
  c.chunks = ceil_div(channels, c.each);
  return c;
}

}  // namespace invar::ops::slide
