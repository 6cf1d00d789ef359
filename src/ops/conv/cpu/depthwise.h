// Groups of one channel: every tap is a vector of neighbouring outputs times one weight, out of a copied block (kernels/cpu/window_copies.h).
// Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "kernels/cpu/gemm_packing.h"
#include "kernels/cpu/window_copies.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The lines of a plane of a block's copy that hold elements of the operand: the same for all channels of the block.
struct Inside {
  int64_t to, from, lines, from_hop, count, step;
};
constexpr int kMostPlanes = 9;
// Fills the copy with +0, behind it too, and tells what of it is to be copied of each channel; planes, or 0: too many.
INVAR_INLINE int insides_of(const Axis (&a)[kAxes], const BlockCut& c, const Block& b, float* copy,
                            Inside (&inside)[kMostPlanes]) {
  const Axis &deep = a[0], &high = a[1], &wide = a[2];
  const int64_t from = lowest(high, b.of[1], b.row), step = step_of(high), lines = c.lines - c.rows + b.rows;
  int n = 0;
  if (b.of[0].taps * high.planes * wide.planes > kMostPlanes) return 0;
  for (int64_t t = 0; t < b.of[0].taps; ++t) {
    const slide::Tap tap = slide::tap_of(deep, b.of[0], t);
    const int64_t d = element(deep, tap.plane, b.deep + tap.shift);
    for (int64_t q = 0; q < high.planes; ++q)
      for (int64_t r = 0; r < wide.planes; ++r, ++n) {
        const Line line = line_of(wide, r, lowest(wide, b.of[2], b.column), c.pitch);
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
// A vector that holds the end of a line is +0 behind it, where the copy is +0, or is copied after it.
INVAR_INLINE void copy_insides(const Inside* inside, int planes, int64_t pitch, const float* x, float* copy) {
  for (const Inside* s = inside; s < inside + planes; ++s)
    for (int64_t l = 0; l < s->lines; ++l) {
      const float* from = x + s->from + l * s->from_hop;
      float* to = copy + s->to + l * pitch;
      if (s->step == 1)
        for (int64_t i = 0; i < s->count; i += kW) store(to + i, load_part(from + i, within(s->count - i)));
      else
        copy_spread(from, s->step, s->count, to);
    }
}

// to[j] = the contraction of w[0 ... k) with x[offset[t] + j] for n outputs, and up to kSlideSlack more.
[[gnu::noinline]] void thin_rows(const float* x, const int64_t* offset, const float* w, int64_t k, int64_t n,
                                 float* to) {
  sum_taps(
      x, offset, k, n,
      to, [w](F sum, F v, int64_t t) __attribute__((always_inline)) { return fma(v, set1(w[t]), sum); });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
