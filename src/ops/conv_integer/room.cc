// Shapes of an integer convolution and the check of a call.
#include "ops/conv_integer/conv_integer.h"

#include <algorithm>

#include "kernels/check.h"

namespace invar::ops::conv_integer {

static bool is_byte(const View& v) {
  return v.dtype == DType::i8 || v.dtype == DType::u8;
}

Weights weights_of(const View& w, const Attributes& attrs) {
  Weights r{ConvIntegerAttributes(attrs).groups, 0, w.dim[1], 1, 0, w.rank > 2 ? w.dim[w.rank - 1] : 1};
  r.rows = w.dim[0] / r.groups;
  for (int i = 2; i < w.rank; ++i) r.taps *= w.dim[i];
  r.k = r.taps * r.channels;
  return r;
}

Geometry geometry_of(const Call& call) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  Geometry p{};
  static_cast<Weights&>(p) = weights_of(w, *call.attrs);
  p.images = x.dim[0], p.columns = p.channel = 1;
  const ConvIntegerAttributes attrs(call);
  const int axes = w.rank - 2;
  for (int i = 0; i < axes; ++i)
    p.axis[kAxes - axes + i] =
        slide::axis_of({attrs.strides, attrs.dilations, attrs.pads}, i, axes, w.dim[2 + i], false);
  slide::fit_axes(x, out, p.axis);
  for (const Axis& a : p.axis) {
    p.columns *= a.out, p.channel *= a.planes * a.length;
    p.copies |= a.planes * a.length != a.in || a.low != 0 || a.stride != 1;
  }
  return p;
}

const char* check(const Call& c) {
  if (c.in.size() < 3 || c.in.size() > 5 || c.out.size() != 1)
    return "an operand, weights, a bias, perhaps their zero points; one result";
  const View &x = c.in[0], &w = c.in[1], &bias = c.in[2], &out = c.out[0];
  if (!is_byte(x) || !is_byte(w) || bias.dtype != DType::i32 || out.dtype != DType::i32)
    return "operand and weights of i8 or u8, bias and result of i32";
  if (w.rank != x.rank || out.rank != x.rank) return "operand, weights and result of one rank";
  if (!c.attrs) return "attributes";
  const ConvIntegerAttributes attrs(c);
  const slide::Window window{attrs.strides, attrs.dilations, attrs.pads};
  if (const char* wrong = slide::check_lists(x, window)) return wrong;
  const int64_t groups = attrs.groups, m = w.dim[0];
  if (groups < 1 || x.dim[1] % groups || m % groups) return "channels that the groups divide";
  if (w.dim[1] != x.dim[1] / groups) return "weights [M, C / groups, ...] for C channels";
  if (groups > slide::kMostSetting) return "fewer than 2^30 groups";
  if (out.dim[0] != x.dim[0] || out.dim[1] != m) return "a result [N, M, ...]";
  if (bias.rank != 1 || bias.dim[0] != m) return "a bias [M]";
  for (size_t i = 3; i < c.in.size(); ++i) {
    const View& z = c.in[i];
    if (z.dtype != c.in[i - 3].dtype || z.rank > 1) return "zero points of their integers' type";
    if (z.elements() != 1 && (i == 3 || z.dim[0] != m))
      return "one zero point of the operand; one of the weights or [M]";
  }
  for (int i = 0; i < x.rank - 2; ++i) {
    if (const char* wrong = slide::check_axis(x, window, i, w.dim[2 + i])) return wrong;
    const Axis a = slide::axis_of(window, i, x.rank - 2, w.dim[2 + i], false);
    const int64_t free = a.pad + a.end_pad - ((a.kernel - 1) * a.dilation + 1) + x.dim[2 + i];
    if (out.dim[2 + i] != (free < 0 ? 0 : free / a.stride + 1))
      return "spatial dimensions of the result that follow from the settings";
  }
  if (!slide::within(x) || !slide::within(w) || !slide::within(out)) return "shapes that memory could hold";
  const Geometry p = geometry_of(c);
  int64_t copy = std::max<int64_t>(p.images, 1), words = 64;
  for (int64_t n : {p.groups, p.channels, p.axis[0].planes, p.axis[0].length, p.axis[1].planes,
                    p.axis[1].length, p.axis[2].planes, p.axis[2].length})
    if (!slide::within(copy, std::max<int64_t>(n, 1))) return "pads that memory could hold";
  int64_t k = 1;
  for (int i = 1; i < w.rank; ++i)
    if (!slide::within(k, std::max<int64_t>(w.dim[i], 1))) return "weights that memory could hold";
  if (!slide::within(words, k) || p.channel > INT32_MAX / std::max<int64_t>(p.channels, 1))
    return "a group of an image of at most 2^31 bytes, with its pads";
  return nullptr;
}

}  // namespace invar::ops::conv_integer
