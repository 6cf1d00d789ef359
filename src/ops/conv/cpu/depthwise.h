// Depthwise convolution: each tap is a vector of adjacent outputs times one weight, read from a
// padded tile (kernels/cpu/window_copies.h). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_packing.h"
#include "kernels/cpu/window_copies.h"
#include "num/contract/lanes.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The lines of one plane of a tile's copy that hold operand elements: the same for all channels.
struct InteriorLines {
  int64_t to, from, lines, from_hop, count, step;
};
constexpr int kMostPlanes = 9;
// Zeroes the copy and the slack after it, and lists the lines to copy per channel. Returns the
// number of planes, or 0 if there are too many.
INVAR_INLINE int interior_of(const Axis (&a)[kAxes], const BlockTiling& c, const Block& b, float* copy,
                             InteriorLines (&inside)[kMostPlanes]) {
  const Axis &deep = a[0], &high = a[1], &wide = a[2];
  const int64_t from = first_position(high, b.of[1], b.row), step = step_of(high),
                lines = c.lines - c.rows + b.rows;
  int n = 0;
  if (b.of[0].taps * high.planes * wide.planes > kMostPlanes) return 0;
  for (int64_t t = 0; t < b.of[0].taps; ++t) {
    const slide::TapOffset tap = slide::tap_of(deep, b.of[0], t);
    const int64_t d = element(deep, tap.plane, b.deep + tap.shift);
    for (int64_t q = 0; q < high.planes; ++q)
      for (int64_t r = 0; r < wide.planes; ++r, ++n) {
        const PaddedRun line = padded_run(wide, r, first_position(wide, b.of[2], b.column), c.pitch);
        const int64_t top = element(high, q, from);
        const int64_t begin = top < 0 ? num::min_i64(slide::ceil_div(-top, step), lines) : 0;
        const int64_t end = top < high.in ? num::min_i64(slide::ceil_div(high.in - top, step), lines) : 0;
        const bool any = d >= 0 && d < deep.in && begin < end;
        inside[n] = {(n * c.lines + begin) * c.pitch + line.before,
                     (d * high.in + top + begin * step) * wide.in + line.first,
                     any ? end - begin : 0,
                     step * wide.in,
                     line.count,
                     line.step};
      }
  }
  for (int64_t i = 0; i < c.floats + kSlideSlack; ++i) copy[i] = 0;
  return n;
}
// A vector that holds the end of a line writes +0 after it, where the copy is +0 or is written
// later.
INVAR_INLINE void copy_interior(const InteriorLines* inside, int planes, int64_t pitch, const float* x,
                                float* copy) {
  for (const InteriorLines* s = inside; s < inside + planes; ++s)
    for (int64_t l = 0; l < s->lines; ++l) {
      const float* from = x + s->from + l * s->from_hop;
      float* to = copy + s->to + l * pitch;
      if (s->step == 1)
        for (int64_t i = 0; i < s->count; i += kW)
          store(to + i, load_part(from + i, valid_lanes(s->count - i)));
      else
        copy_strided(from, s->step, s->count, to);
    }
}

// to[j] = the contraction of w[0 ... k) with x[offset[t] + j] for n outputs, and up to kSlideSlack
// more.
[[gnu::noinline]] void depthwise_rows(const float* x, const int64_t* offset, const float* w, int64_t k,
                                      int64_t n, float* to) {
  sum_taps(
      x, offset, k, n,
      to, [w](F sum, F v, int64_t t) __attribute__((always_inline)) { return fma(v, set1(w[t]), sum); });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
