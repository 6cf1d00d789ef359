// Convolution shapes: weight layout, geometry, work partition, and the check of a call.
#include <algorithm>

#include "kernels/check.h"
#include "num/exact16/quantize.h"
#include "ops/conv/backward_weight.h"
#include "ops/conv/conv.h"

namespace invar::ops::conv {
static bool full_panels(int64_t rows) {  // except a few
  return rows > 0 && slide::ceil_div(rows, 32) * 32 <= rows + rows / 8;
}

constexpr int64_t kMaxIndirectTaps = 64;

// Tells whether a quarter of all taps of all outputs fall into the padding, and there are few taps.
static bool mostly_padding(const Axis (&axis)[kAxes]) {
  int64_t all = 1, inside = 1, taps = 1;
  for (const Axis& a : axis) {
    if (a.transposed || a.kernel > kMaxIndirectTaps || (taps *= a.kernel) > kMaxIndirectTaps || a.out < 1)
      return false;
    int64_t n = 0;
    for (int64_t t = 0; t < a.kernel; ++t) {
      const int64_t low = a.pad - t * a.dilation;  // the outputs o with low <= o * stride < low + in
      const int64_t begin = low > 0 ? slide::ceil_div(low, a.stride) : 0;
      const int64_t end = low + a.in > 0 ? std::min(a.out, slide::ceil_div(low + a.in, a.stride)) : 0;
      n += std::max<int64_t>(end - begin, 0);
    }
    // Scaled to at most 4096 per axis, so that the product of three axes does not overflow.
    const int64_t most = a.out * a.kernel, unit = slide::ceil_div(most, 4096);
    all *= most / unit, inside *= n / unit;
  }
  return inside * 4 <= all * 3;
}

static slide::Window window_of(const ConvAttributes& a) {
  return {a.strides, a.dilations, a.pads};
}

WeightLayout weight_layout(const View& w, const Attributes& attrs, bool transposed, bool pixel_major) {
  WeightLayout r{};
  const ConvAttributes a(attrs);
  r.groups = a.groups;
  r.rows = transposed ? w.dim[1] : w.dim[0] / r.groups;
  r.channels = transposed ? w.dim[0] / r.groups : w.dim[1];
  const int axes = w.rank - 2;
  for (int i = 0; i < axes; ++i)
    r.axis[kAxes - axes + i] = slide::axis_of(window_of(a), i, axes, w.dim[2 + i], transposed);
  r.depthwise = r.channels == 1 && r.rows <= 4 && !pixel_major;
  // Pixel-major pays if one copy serves several taps, or the GEMM is large enough, or a copy is
  // made anyway, and if vectors of channels are nearly full. Layers with many weights per tap have
  // small images, whose pixels would not fill vectors. The few channels of a picture would be
  // turned one place at a time.
  constexpr int64_t kMany = 150'000, kFew = 4;
  int64_t taps = 1, strides = 1;
  for (const Axis& a : r.axis) taps *= a.kernel, strides *= a.stride;
  r.pixel_major =
      pixel_major ||
      (!r.depthwise && (r.channels > kFew || transposed) &&
       (taps > 1 || (strides > 1 && !transposed) || r.rows * r.channels >= kMany) && full_panels(r.rows));
  return r;
}

bool takes_channels_last(const View& w, const Attributes& attrs) {
  constexpr int64_t kMostTaps = kMaxIndirectTaps, kFarthest = 16,
                    kMostDilation = 64;  // else indirection buffers or copies would grow large
  const int axes = w.rank - 2;           // negative: not constant
  const ConvAttributes a(attrs);
  if (axes < 1 || axes > kAxes || a.groups < 1) return false;
  if (!a.strides.fits(axes) || !a.dilations.fits(axes) || !a.pads.fits(2 * axes) || !slide::within(w))
    return false;
  int64_t taps = 1;
  for (int i = 0; i < axes; ++i) {
    const int64_t kernel = w.dim[2 + i], stride = a.strides[i], dilation = a.dilations[i];
    if (kernel < 1 || kernel > kMostTaps || stride < 1 || stride > kFarthest || dilation < 1 ||
        dilation > kMostDilation)
      return false;
    const int64_t reach = (kernel - 1) * dilation + 1;
    for (int side : {i, axes + i})
      if (a.pads[side] < 0 || a.pads[side] >= reach) return false;
    if (kernel > kFarthest || (taps *= kernel) > kMostTaps) return false;
  }
  const WeightLayout r = weight_layout(w, attrs, false, true);
  return r.channels > 1 && full_panels(r.rows);
}

ConvGeometry geometry_of(const Call& call, bool transposed, bool pixel_major) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  ConvGeometry p{};
  p.weights = weight_layout(w, *call.attrs, transposed, pixel_major);
  p.images = x.dim[0], p.groups = p.weights.groups;
  p.channels = p.weights.channels, p.rows = p.weights.rows, p.depthwise = p.weights.depthwise;
  std::copy(p.weights.axis, p.weights.axis + kAxes, p.axis);
  slide::fit_axes(x, out, p.axis);
  p.channel = 1;
  for (const Axis& a : p.axis) {
    p.channel *= a.planes * a.length;
    p.padded_copy |= a.planes * a.length != a.in || a.low != 0 || (!transposed && a.stride != 1);
  }
  std::copy(p.axis, p.axis + kAxes,
            p.weights.axis);  // merged axes have one tap: the weight order is unchanged
  // Not if far pads or strides would make the copy mostly gaps.
  int64_t size = 1, most = 64;
  for (const Axis& a : p.axis) most *= 2 * std::max<int64_t>(a.in, 1);
  p.pixel_major = p.weights.pixel_major && call.in[1].packed;
  p.skips_padding = p.pixel_major && mostly_padding(p.axis);
  for (const Axis& a : p.axis)
    p.pixel_major =
        p.pixel_major && a.out > 0 &&
        (pixel_major || p.skips_padding || (slide::within(size, positions_of(a)) && size <= most));
  // If no K span crosses pixels, pixels need not be contiguous, and the pitch keeps the rows of a
  // tile in different L1 cache sets.
  p.nhwc_operand = x.pitch != 0;
  p.indirect = p.nhwc_operand || p.skips_padding;
  p.pitch = p.nhwc_operand ? x.pitch : pitch_of(p.channels);
  p.line = p.axis[kAxes - 1].planes * p.axis[kAxes - 1].length;
  return p;
}

// Chooses the size in (most / 2, most] that is a multiple of `step` and divides n most evenly
// if there are few blocks, so that threads get nearly equal work.
static int64_t even_block_size(int64_t n, int64_t most, int64_t step) {
  constexpr int64_t kMany = 64;
  if (n <= most || n >= kMany * most) return std::clamp<int64_t>(n, 1, most);
  int64_t best = most;
  for (int64_t part = most; part > most / 2; part -= step)
    if (slide::ceil_div(n, part) * part < slide::ceil_div(n, best) * best) best = part;
  return best;
}

// Measured on the layers of ResNet-50 with L2 caches of 512 KiB: rows x one K block of weights and
// a run of panels stay there.
GemmPartition gemm_partition(const ConvGeometry& p, int panel, int tallest) {
  constexpr int64_t kRows = 96, kRun = 8, kUnits = 24;
  GemmPartition c{};
  int64_t columns = 1;
  c.phases = 1;
  for (const Axis& a : p.axis) {
    c.phases *= slide::phases_of(a);
    columns *= a.out == 0 ? 0 : slide::phase_of(a, 0).count;
  }
  if (columns == 0) c.phases = 0;
  c.merged = p.images > 1 && columns % panel != 0 && columns < 16 * panel;
  c.images = c.merged ? 1 : p.images;
  c.panels = slide::ceil_div(c.merged ? columns * p.images : columns, panel);
  c.row_blocks = slide::ceil_div(p.rows, kRows);
  if (c.row_blocks) c.rows = slide::ceil_div(slide::ceil_div(p.rows, c.row_blocks), tallest) * tallest;
  if (c.rows > p.rows) c.rows = p.rows;
  if (c.rows) c.row_blocks = slide::ceil_div(p.rows, c.rows);
  c.run = even_block_size(
      c.panels,
      std::clamp<int64_t>(c.panels * c.phases * c.images * p.groups * c.row_blocks / kUnits, 1, kRun), 1);
  c.runs = slide::ceil_div(c.panels, c.run);
  return c;
}

PixelPartition pixel_partition(const ConvGeometry& p, int panel, int tallest) {
  constexpr int64_t kRows = 208, kRun = 16, kUnits = 48;
  PixelPartition c{};
  if (!p.pixel_major) return c;
  c.phases = 1, c.pixels = p.images;
  for (const Axis& a : p.axis) {
    c.phases *= slide::phases_of(a);
    c.pixels *= slide::phase_of(a, 0).count;
  }
  c.rows = even_block_size(c.pixels, kRows, tallest);
  c.blocks = slide::ceil_div(c.pixels, c.rows);
  c.panels = slide::ceil_div(p.rows, panel);
  c.run = even_block_size(
      c.panels, std::clamp<int64_t>(c.panels * c.phases * p.groups * c.blocks / kUnits, 1, kRun), 1);
  c.runs = slide::ceil_div(c.panels, c.run);
  return c;
}

CopyPartition copy_partition(const ConvGeometry& p) {
  constexpr int64_t kElements = 8192;  // a unit is worth scheduling on another thread
  CopyPartition c{};
  if (p.nhwc_operand) return c;
  if (p.pixel_major) {
    const int64_t places = std::max<int64_t>(positions_of(copied_axis(p, kAxes - 1)), 1);
    c.channels = std::max<int64_t>(kElements / places / 16 * 16, 16);
    c.parts = slide::ceil_div(p.channels, c.channels);
    c.lines =
        p.images * p.groups * positions_of(copied_axis(p, 0)) * positions_of(copied_axis(p, 1)) * c.parts;
    c.each = slide::ceil_div(kElements, places * std::max<int64_t>(std::min(c.channels, p.channels), 1));
    c.units = slide::ceil_div(c.lines, c.each);
    return c;
  }
  if (!p.padded_copy || p.channel == 0) return c;
  c.lines = p.images * p.groups * p.channels * (p.channel / p.line);
  c.each = slide::ceil_div(kElements, p.line);
  c.units = slide::ceil_div(c.lines, c.each);
  return c;
}

const char* check(const Call& c, bool transposed) {
  if (c.in.size() < 2 || c.in.size() > 3 || c.out.size() != 1)
    return "an operand, weights, perhaps a bias; one result";
  const View &x = c.in[0], &w = c.in[1], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_f32(out) || (c.in.size() == 3 && !is_weight(c.in[2])))
    return "f32 (weights and bias may be bf16 or f16)";
  if (w.rank != x.rank || out.rank != x.rank) return "operand, weights and result of one rank";
  if (!c.attrs) return "attributes";
  const ConvTransposeAttributes attrs(c);  // conv has no output_padding
  const slide::Window window{attrs.strides, attrs.dilations, attrs.pads};
  if (const char* wrong = slide::check_lists(x, window)) return wrong;
  const int axes = x.rank - 2;
  const int64_t groups = attrs.groups;
  if (groups < 1 || x.dim[1] % groups || w.dim[0] % groups) return "channels that the groups divide";
  if (transposed ? w.dim[0] != x.dim[1] : w.dim[1] != x.dim[1] / groups)
    return transposed ? "weights [C, M / groups, ...] for C channels"
                      : "weights [M, C / groups, ...] for C channels";
  if (groups > slide::kMostSetting) return "fewer than 2^30 groups";
  const int64_t m = transposed ? w.dim[1] * groups : w.dim[0];
  if (out.dim[0] != x.dim[0] || out.dim[1] != m) return "a result [N, M, ...]";
  if (c.in.size() == 3 && (c.in[2].rank != 1 || c.in[2].dim[0] != m)) return "a bias [M]";
  if (!attrs.output_padding.fits(axes)) return "output_padding for each spatial dimension";
  for (int i = 0; i < axes; ++i) {
    if (const char* wrong = slide::check_axis(x, window, i, w.dim[2 + i])) return wrong;
    const Axis a = slide::axis_of(window, i, axes, w.dim[2 + i], transposed);
    const int64_t more = attrs.output_padding[i];
    if (more < 0 || more > slide::kMostSetting) return "an output_padding from 0 to 2^30";
    const int64_t reach = (a.kernel - 1) * a.dilation + 1;
    const int64_t free = a.pad + a.end_pad - reach + x.dim[2 + i];
    const int64_t length = transposed ? (x.dim[2 + i] - 1) * a.stride + more + reach - a.pad - a.end_pad
                           : free < 0 ? 0
                                      : free / a.stride + 1;
    if (length < 0) return "pads that leave no less than nothing";
    if (out.dim[2 + i] != length) return "spatial dimensions of the result that follow from the settings";
  }
  if (!slide::within(x) || !slide::within(w) || !slide::within(out)) return "shapes that memory could hold";
  const ConvGeometry p = geometry_of(c, transposed);
  int64_t copy = std::max<int64_t>(p.images, 1);
  for (int64_t n : {p.groups, p.channels, p.axis[0].planes, p.axis[0].length, p.axis[1].planes,
                    p.axis[1].length, p.axis[2].planes, p.axis[2].length})
    if (!slide::within(copy, std::max<int64_t>(n, 1))) return "pads that memory could hold";
  return nullptr;
}

const char* check_exact16(const Call& c) {
  if (const char* wrong = check(c, false)) return wrong;
  const View& w = c.in[1];
  int64_t k = 1;
  bool covered = true;
  for (int i = 1; i < w.rank; ++i) covered = covered && slide::within(k, w.dim[i]);
  return covered && k <= num::kExact16LongestRow ? nullptr : "at most 2^22 weights of an output channel";
}

BackwardWeight backward_weight(const Call& call) {
  const View &grad = call.in[0], &x = call.in[1], &w = call.out[0];
  BackwardWeight p{};
  const ConvAttributes attrs(call);
  p.images = x.dim[0], p.groups = attrs.groups;
  p.rows = w.dim[0] / p.groups, p.channels = w.dim[1];
  p.taps = p.pixels = p.plane = 1;
  const int axes = x.rank - 2;
  for (int d = 0; d < kAxes; ++d) {
    auto& a = p.axis[d];
    a = {1, 1, 1, 1, 1, 0};
    if (const int i = d - (kAxes - axes); i >= 0) {
      const slide::Axis of = slide::axis_of(window_of(attrs), i, axes, w.dim[2 + i], false);
      a = {x.dim[2 + i], grad.dim[2 + i], of.kernel, of.stride, of.dilation, of.pad};
    }
    p.taps *= a.kernel, p.pixels *= a.out, p.plane *= a.in;
  }
  p.columns = p.channels * p.taps;
  p.k = p.images * p.pixels;
  return p;
}

const char* check_backward_weight(const Call& c) {
  if (c.in.size() != 2 || c.out.size() != 1) return "a gradient and an operand; one result";
  if (!is_f32(c.in[0]) || !is_f32(c.in[1]) || !is_f32(c.out[0])) return "f32";
  // The convolution that it belongs to.
  const View of[2] = {c.in[1], c.out[0]};
  return check({.in = of, .out = {&c.in[0], 1}, .attrs = c.attrs}, false);
}

BackwardPartition backward_partition(const BackwardWeight& p, int panel, int tallest) {
  constexpr int64_t kRows = 96, kRun = 8, kUnits = 64;
  BackwardPartition c{};
  c.segments = num::segments_in_use(p.k);
  if (p.rows == 0 || p.columns == 0) c.segments = 0;
  c.rows = even_block_size(p.rows, kRows, tallest);
  c.row_blocks = slide::ceil_div(p.rows, c.rows);
  c.panels = slide::ceil_div(p.columns, panel);
  c.run = even_block_size(
      c.panels, std::clamp<int64_t>(c.panels * c.segments * p.groups * c.row_blocks / kUnits, 1, kRun), 1);
  c.runs = slide::ceil_div(c.panels, c.run);
  return c;
}

}  // namespace invar::ops::conv
