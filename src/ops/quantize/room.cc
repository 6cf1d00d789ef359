// The layout of scales and zero points.
#include "ops/quantize/quantize.h"

namespace invar::ops {

ScaleLayout scale_layout(const Call& call) {
  const View &x = call.in[0], &scale = call.in[1];
  ScaleLayout g{};
  const QuantizeLinearAttributes attrs(call);
  g.block = attrs.block;
  g.by_axis = g.block == 0 && scale.elements() != 1;
  if (!g.block && !g.by_axis) return g;
  const AxisExtents a = axis_extents(x, attrs.axis);
  g.n = a.n, g.inner = a.inner;
  if (g.block > a.n) g.block = a.n > 0 ? a.n : 1;  // one block for the whole axis
  if (g.block) g.blocks = (a.n + g.block - 1) / g.block;
  return g;
}

}  // namespace invar::ops
