// Maxima over windows of a channel that has neither a NaN nor -0. Then the maximum of two elements
// is one instruction in any order: first those of the lines of a window, read in place, then those
// along the line. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/window_copies.h"
#include "ops/pool/pool.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The test takes less than the two facts about NaN and signs that a maximum carries along
// otherwise.
INVAR_INLINE bool has_ordered_elements(const float* x, int64_t n) {
  const I below = set1_i(INT32_MIN + 1);  // -0 alone is less
  M odd = gt(below, below);
  auto test = [&](F a, F b) __attribute__((always_inline)) {
    odd = either(odd, either(unordered(a, b), either(gt(below, bits(a)), gt(below, bits(b)))));
  };
  int64_t i = 0;
  for (; i + 2 * kW <= n; i += 2 * kW) test(load(x + i), load(x + i + kW));
  for (; i < n; i += kW) test(load_part(x + i, static_cast<int>(num::min_i64(n - i, kW))), zero());
  return !any(odd);
}

// A line of maxima with -inf around it, and its planes by the stride.
struct MaximaLine {
  bool takes;                         // whether the windows are of this kind
  int64_t planes, plane;              // planes, and positions of each
  int64_t before, first, count, all;  // elements [first, first + count) are at `before` of `all`
  explicit MaximaLine(const pool::PoolGeometry& p) {
    const Axis &deep = p.axis[0], &wide = p.axis[2];
    takes = p.tiling.floats && deep.kernel == 1 && deep.stride == 1 && deep.pad == 0 && deep.out <= deep.in &&
            wide.dilation == 1 && p.tiling.columns >= wide.out;
    planes = num::min_i64(wide.stride, wide.kernel);
    plane = slide::ceil_div(wide.out, kW) * kW + wide.kernel / wide.stride;
    all = plane * wide.stride;
    before = wide.pad > 0 ? num::min_i64(wide.pad, all) : 0;
    first = wide.pad < 0 ? -wide.pad : 0;
    count = num::min_i64(wide.in - first, all - before);
    if (count < 0) count = 0;
  }
  int64_t floats(const Axis& wide) const { return takes ? all + (wide.stride > 1 ? planes * plane : 0) : 0; }
};

// The results of a tile of the channel at x, from row `to` on; line: of floats(), -inf except where
// elements are. False, and nothing is done, if an element is not ordered.
INVAR_INLINE bool maxima_of_lines(const pool::PoolGeometry& p, const MaximaLine& l, const Block& b,
                                  const float* x, float* line, float* to) {
  const Axis &high = p.axis[1], &wide = p.axis[2];
  const int64_t hop = high.dilation * wide.in;
  const int64_t low = b.row * high.stride - high.pad,
                end = low + (b.rows - 1) * high.stride + (high.kernel - 1) * high.dilation + 1;
  const int64_t top = low < 0 ? 0 : low, lines = num::min_i64(end, high.in) - top;
  x += b.deep * high.in * wide.in;
  if (lines > 0 && !has_ordered_elements(x + top * wide.in, lines * wide.in)) return false;
  for (int64_t i = 0; i < b.rows; ++i, to += wide.out) {
    const int64_t row = b.row + i, taps = pool::taps_inside(high, row, false),
                  from = row * high.stride - high.pad + pool::first_tap_inside(high, row) * high.dilation;
    const float* const at = taps > 0 ? x + from * wide.in + l.first : x;  // x may be of no elements
    for (int64_t j = 0; j < l.count; j += kW) {
      const int lanes = static_cast<int>(num::min_i64(l.count - j, kW));
      F most = set1(-__builtin_inff());
      for (int64_t t = 0; t < taps; ++t) most = larger(most, load_part(at + t * hop + j, lanes));
      store_part(line + l.before + j, most, lanes);
    }
    const float* planes = line;
    if (wide.stride > 1) {
      float* const apart = line + l.all;
      for (int64_t r = 0; r < l.planes; ++r)
        copy_strided(line + r, wide.stride, l.plane, apart + r * l.plane);
      planes = apart;
    }
    const int64_t room = wide.out * (b.rows - i);  // the next row overwrites what is too much
    for (int64_t j = 0; j < wide.out; j += kW) {
      F most = load(planes + j);
      const float* plane = planes;
      for (int64_t t = 1, r = 1, shift = j; t < wide.kernel; ++t, ++r) {
        plane += l.plane;
        if (r >= wide.stride) r = 0, plane = planes, ++shift;
        most = larger(most, load(plane + shift));
      }
      if (j + kW <= room)
        store_canonical(to + j, most);
      else
        store_canonical_n(to + j, most, static_cast<int>(wide.out - j));
    }
  }
  return true;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
