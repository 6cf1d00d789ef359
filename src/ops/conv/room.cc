#include <algorithm>

#include "ops/check.h"
#include "ops/conv/conv.h"

namespace invar::ops::conv {
namespace {

// Element i of a list attribute, or the fallback where the attribute is absent.
int64_t item(const Attrs& attrs, const char* name, int i, int64_t fallback) {
  auto it = attrs.find(name);
  return it == attrs.end() ? fallback : std::get<std::vector<int64_t>>(it->second)[static_cast<size_t>(i)];
}
bool has_length(const Attrs& attrs, const char* name, int n) {
  auto it = attrs.find(name);
  return it == attrs.end() || std::get<std::vector<int64_t>>(it->second).size() == static_cast<size_t>(n);
}

// What attributes and weights say of an axis: everything but the sizes of operand and result.
Axis axis_of(const View& w, const Attrs& attrs, bool transposed, int i) {
  Axis a;
  a.kernel = w.dim[2 + i];
  a.stride = item(attrs, "strides", i, 1);
  a.dilation = item(attrs, "dilations", i, 1);
  a.pad = item(attrs, "pads", i, 0);
  a.transposed = transposed;
  return a;
}

void complete(Axis& a) {
  const int64_t period = a.stride / gcd(a.stride, a.dilation);
  if (!a.transposed) {
    a.planes = std::min(a.kernel, period);
    a.length = a.out + (a.kernel - 1) * a.dilation / a.stride;
    a.low = -a.pad;
    return;
  }
  a.hop = period;
  a.classes = std::min(a.kernel, period);
  // Output 0 or the first one behind it that tap r hits reads element ceil((pad - r * dilation) / stride).
  auto first = [&](int64_t r) {
    const int64_t n = a.pad - r * a.dilation;
    return n >= 0 ? ceil_div(n, a.stride) : -(-n / a.stride);
  };
  a.low = first(a.kernel - 1);
  a.length = first(0) + ceil_div(a.out, a.stride) - a.low;
}

// An axis that is only carried along, and the one before it, are one longer axis.
void merge(Axis (&axis)[kAxes]) {
  auto carried = [](const Axis& a) { return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.out == a.in; };
  for (int round = 0; round + 1 < kAxes; ++round) {
    const Axis last = axis[kAxes - 1];
    Axis& a = axis[kAxes - 2];
    if (!carried(last) || (a.stride != 1 && last.in != 1)) return;
    a.in *= last.in, a.out *= last.in, a.dilation *= last.in, a.pad *= last.in;
    for (int d = kAxes - 1; d > 0; --d) axis[d] = axis[d - 1];
    axis[0] = Axis();
    axis[0].transposed = a.transposed;
  }
}

constexpr int64_t kMostElements = int64_t{1} << 46;  // beyond any memory, and far from overflow
constexpr int64_t kMostSetting = int64_t{1} << 30;

// n *= by; false where that is more than any memory holds.
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

}  // namespace

Weights weights_of(const View& w, const Attrs& attrs, bool transposed) {
  Weights r{};
  r.groups = attr_i(attrs, "groups", 1);
  r.rows = transposed ? w.dim[1] : w.dim[0] / r.groups;
  r.channels = transposed ? w.dim[0] / r.groups : w.dim[1];
  for (int i = 0; i + 2 < w.rank; ++i) {
    Axis& a = r.axis[kAxes - (w.rank - 2) + i];
    a = axis_of(w, attrs, transposed, i);
    complete(a);
  }
  r.thin = r.channels == 1 && r.rows <= 4;
  return r;
}

Plan plan_of(const Call& call, bool transposed) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  Plan p{};
  p.weights = weights_of(w, *call.attrs, transposed);
  p.images = x.dim[0], p.groups = p.weights.groups;
  p.channels = p.weights.channels, p.rows = p.weights.rows, p.thin = p.weights.thin;
  const int axes = x.rank - 2;
  for (int i = 0; i < kAxes; ++i) {
    p.axis[i] = p.weights.axis[i];
    const int from = i - (kAxes - axes);
    if (from >= 0) p.axis[i].in = x.dim[2 + from], p.axis[i].out = out.dim[2 + from];
  }
  merge(p.axis);
  p.channel = 1;
  for (Axis& a : p.axis) {
    complete(a);
    p.channel *= a.planes * a.length;
    p.copied |= a.planes * a.length != a.in || a.low != 0 || (!transposed && a.stride != 1);
  }
  std::copy(p.axis, p.axis + kAxes,
            p.weights.axis);  // axes that went have one tap: nothing moves in the weights
  p.line = p.axis[kAxes - 1].planes * p.axis[kAxes - 1].length;
  return p;
}

// Measured with the layers of ResNet-50, second caches of 512 KiB: rows x a chain of weights and a run of panels stay there.
Cut cut_of(const Plan& p, int panel, int tallest) {
  constexpr int64_t kRows = 96, kRun = 8, kUnits = 32;
  Cut c{};
  int64_t columns = 1;
  c.phases = 1;
  for (const Axis& a : p.axis) {
    c.phases *= phases_of(a);
    columns *= a.out == 0 ? 0 : phase_of(a, 0).count;
  }
  if (columns == 0) c.phases = 0;
  c.merged = p.images > 1 && columns % panel != 0 && columns < 16 * panel;
  c.images = c.merged ? 1 : p.images;
  c.panels = ceil_div(c.merged ? columns * p.images : columns, panel);
  c.row_blocks = ceil_div(p.rows, kRows);
  if (c.row_blocks) c.rows = ceil_div(ceil_div(p.rows, c.row_blocks), tallest) * tallest;
  if (c.rows > p.rows) c.rows = p.rows;
  if (c.rows) c.row_blocks = ceil_div(p.rows, c.rows);
  c.run = std::clamp<int64_t>(c.panels * c.phases * c.images * p.groups * c.row_blocks / kUnits, 1, kRun);
  c.runs = ceil_div(c.panels, c.run);
  return c;
}

CopyCut copy_cut(const Plan& p) {
  constexpr int64_t kElements = 8192;  // a unit is worth handing to another thread
  CopyCut c{};
  if (!p.copied || p.channel == 0) return c;
  c.lines = p.images * p.groups * p.channels * (p.channel / p.line);
  c.each = ceil_div(kElements, p.line);
  c.units = ceil_div(c.lines, c.each);
  return c;
}

ThinCut thin_cut(const Plan& p) {
  constexpr int64_t kElements = 4096;          // of a block, about: it stays in the first cache
  constexpr int64_t kMost = int64_t{1} << 16;  // of its copy
  ThinCut c{};
  if (!p.thin) return c;
  auto extent = [](const Axis& a) { return (taps_of(a, 0) - 1) * a.hop * a.dilation / a.stride; };
  const Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  if (high.out == 0 || wide.out == 0) return c;
  const int64_t rows = phase_of(high, 0).count, columns = phase_of(wide, 0).count;
  if (extent(wide) > kMost || extent(high) > kMost || deep.kernel > kMost) return c;
  c.columns = std::min<int64_t>(columns, 1024);
  c.pitch = c.columns + extent(wide);
  c.rows = std::clamp<int64_t>(kElements / c.pitch, 1, rows);
  c.row_blocks = ceil_div(rows, c.rows), c.column_blocks = ceil_div(columns, c.columns);
  c.lines = c.rows + extent(high);
  c.floats = 1;
  for (int64_t n : {taps_of(deep, 0), high.planes, wide.planes, c.lines, c.pitch})
    if (!within(c.floats, n) || c.floats > kMost) return ThinCut{};
  return c;
}

const char* check(const Call& c, bool transposed) {
  if (c.in.size() < 2 || c.in.size() > 3 || c.out.size() != 1)
    return "an operand, weights, perhaps a bias; one result";
  const View &x = c.in[0], &w = c.in[1], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_f32(out) || (c.in.size() == 3 && !is_weight(c.in[2])))
    return "f32 (weights and bias may be bf16 or f16)";
  if (x.rank < 3 || x.rank > 2 + kAxes || w.rank != x.rank || out.rank != x.rank)
    return "one to three spatial dimensions behind batch and channels, in operand, weights and result";
  if (!c.attrs) return "attributes";
  const int axes = x.rank - 2;
  const int64_t groups = attr_i(c, "groups", 1);
  if (groups < 1 || x.dim[1] % groups || w.dim[0] % groups) return "channels that the groups divide";
  if (transposed ? w.dim[0] != x.dim[1] : w.dim[1] != x.dim[1] / groups)
    return transposed ? "weights [C, M / groups, ...] for C channels"
                      : "weights [M, C / groups, ...] for C channels";
  if (groups > kMostSetting) return "fewer than 2^30 groups";
  const int64_t m = transposed ? w.dim[1] * groups : w.dim[0];
  if (out.dim[0] != x.dim[0] || out.dim[1] != m) return "a result [N, M, ...]";
  if (c.in.size() == 3 && (c.in[2].rank != 1 || c.in[2].dim[0] != m)) return "a bias [M]";
  for (const char* name : {"strides", "dilations", "output_padding"})
    if (!has_length(*c.attrs, name, axes)) return "strides and dilations for each spatial dimension";
  if (!has_length(*c.attrs, "pads", 2 * axes))
    return "pads at the begin, then at the end, of each spatial dimension";
  for (int i = 0; i < axes; ++i) {
    Axis a = axis_of(w, *c.attrs, transposed, i);
    const int64_t end = item(*c.attrs, "pads", axes + i, 0), more = item(*c.attrs, "output_padding", i, 0);
    if (a.kernel < 1 || a.stride < 1 || a.dilation < 1 || more < 0)
      return "kernels, strides and dilations of 1 and more";
    for (int64_t n : {a.kernel, a.stride, a.dilation, more, a.pad, -a.pad, end, -end})
      if (n > kMostSetting) return "settings below 2^30";
    if (x.dim[2 + i] > kMostSetting) return "spatial dimensions below 2^30";
    const int64_t reach = (a.kernel - 1) * a.dilation + 1;
    const int64_t free = x.dim[2 + i] + a.pad + end - reach;
    const int64_t length = transposed ? (x.dim[2 + i] - 1) * a.stride + more + reach - a.pad - end
                           : free < 0 ? 0
                                      : free / a.stride + 1;
    if (length < 0) return "pads that leave no less than nothing";
    if (out.dim[2 + i] != length) return "spatial dimensions of the result that follow from the settings";
  }
  if (!within(x) || !within(w) || !within(out)) return "shapes that memory could hold";
  const Plan p = plan_of(c, transposed);
  int64_t copy = std::max<int64_t>(p.images, 1);
  for (int64_t n : {p.groups, p.channels, p.axis[0].planes, p.axis[0].length, p.axis[1].planes,
                    p.axis[1].length, p.axis[2].planes, p.axis[2].length})
    if (!within(copy, std::max<int64_t>(n, 1))) return "pads that memory could hold";
  return nullptr;
}

}  // namespace invar::ops::conv
