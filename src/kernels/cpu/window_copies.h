// The copies under sliding windows, over lanes: the whole padded operand, or a block of one channel. In a block outputs are rows of one
// pitch; the few columns between rows are computed and dropped, so that a vector may hold the end of one row and the begin of the
// next. Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "kernels/cpu/vector_io.h"
#include "kernels/sliding_window.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using slide::Axis;
using slide::Block;
using slide::BlockCut;
using slide::kAxes;

// Floats behind a block's copy that vectors may read, and behind its outputs that they may write.
constexpr int kSlideVectors = kW == 16 || kW == 4 ? 16 : 8;  // accumulators in flight
constexpr int64_t kSlideSlack = kSlideVectors * kW;

// Positions of one plane of an axis: `before` outside, `count` from element `first` of the operand on, the others outside.
struct Line {
  int64_t before, count, first, step;
};
INVAR_INLINE int64_t step_of(const Axis& a) {
  return a.transposed ? 1 : a.stride;
}
// The element of the operand at position i of plane p of an axis; may lie outside.
INVAR_INLINE int64_t element(const Axis& a, int64_t p, int64_t i) {
  return i * step_of(a) + p * a.dilation % step_of(a) + a.low;
}
INVAR_INLINE Line line_of(const Axis& a, int64_t plane, int64_t begin, int64_t n) {
  const int64_t step = step_of(a), first = element(a, plane, begin);
  const int64_t before = first < 0 ? num::min_i64(slide::ceil_div(-first, step), n) : 0;
  const int64_t end = first >= a.in ? before : num::min_i64(slide::ceil_div(a.in - first, step), n);
  return {before, end > before ? end - before : 0, first + before * step, step};
}

// to[i] = from[i * step] for i < n and a step above 1.
INVAR_INLINE void copy_spread(const float* from, int64_t step, int64_t n, float* to) {
  if (step == 2)
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

// n positions of a line of x, `fill` outside. Up to a vector may be written behind them if `over`; `readable` elements lie from x on.
template <bool kOver>
INVAR_INLINE void copy_line(const Line& l, const float* x, int64_t readable, int64_t n, float fill,
                            float* to) {
  for (int64_t j = 0; j < l.before; ++j) to[j] = fill;
  const float* source = x + l.first;
  float* line = to + l.before;
  if (l.step == 1) {
    int64_t i = 0;
    for (; i + kW <= l.count; i += kW) store(line + i, load(source + i));
    if (kOver && i < l.count && l.first + i + kW <= readable) {
      store(line + i, load(source + i));
      i = l.count;
    }
    for (; i < l.count; ++i) line[i] = source[i];
  } else {
    copy_spread(source, l.step, l.count, line);
  }
  for (int64_t j = l.before + l.count; j < n; ++j) to[j] = fill;
}

// The lowest position that a phase reads of an axis from output `begin` on.
INVAR_INLINE int64_t lowest(const Axis& a, const slide::Phase& p, int64_t begin) {
  return begin + (a.transposed ? p.shift + (p.taps - 1) * p.shift_hop : 0);
}

// The copy of a block of the channel at x, of whose tensor `readable` elements lie from x on; `fill` outside. kSlideSlack floats
// behind it are written.
INVAR_INLINE void copy_block(const Axis (&a)[kAxes], const BlockCut& c, const Block& b, const float* x,
                             int64_t readable, float fill, float* to) {
  const Axis &deep = a[0], &high = a[1], &wide = a[2];
  const int64_t from = lowest(high, b.of[1], b.row), step = step_of(high), lines = c.lines - c.rows + b.rows;
  for (int64_t t = 0, plane = 0; t < b.of[0].taps; ++t) {
    const slide::Tap tap = slide::tap_of(deep, b.of[0], t);
    const int64_t d = element(deep, tap.plane, b.deep + tap.shift);
    for (int64_t q = 0; q < high.planes; ++q) {
      const int64_t top = element(high, q, from);
      for (int64_t r = 0; r < wide.planes; ++r, ++plane) {
        const Line line = line_of(wide, r, lowest(wide, b.of[2], b.column), c.pitch);
        for (int64_t i = 0; i < lines; ++i) {
          const int64_t h = top + i * step, at = (d * high.in + h) * wide.in;
          const bool inside = d >= 0 && d < deep.in && h >= 0 && h < high.in;
          float* row = to + (plane * c.lines + i) * c.pitch;
          if (inside)
            copy_line<true>(line, x + at, readable - at, c.pitch, fill, row);
          else
            for (int64_t j = 0; j < c.pitch; ++j) row[j] = fill;
        }
      }
    }
  }
  for (int64_t j = 0; j < kSlideSlack; ++j) to[c.floats + j] = fill;
}

// offset[t]: where tap t of output 0 lies in a block's copy, in row-major order of the taps.
INVAR_INLINE void block_offsets(const Axis (&a)[kAxes], const BlockCut& c, const Block& b, int64_t* offset) {
  for (int64_t t0 = 0, n = 0; t0 < b.of[0].taps; ++t0)
    for (int64_t t1 = 0; t1 < b.of[1].taps; ++t1)
      for (int64_t t2 = 0; t2 < b.of[2].taps; ++t2, ++n) {
        const slide::Tap high = slide::tap_of(a[1], b.of[1], t1), wide = slide::tap_of(a[2], b.of[2], t2);
        const int64_t plane = (t0 * a[1].planes + high.plane) * a[2].planes + wide.plane;
        offset[n] = (plane * c.lines + high.shift - lowest(a[1], b.of[1], 0)) * c.pitch + wide.shift -
                    lowest(a[2], b.of[2], 0);
      }
}

// to[j] for R vectors: step(sum, x[offset[t] + j], t) over the taps t < k, by the schedule of a contraction.
template <int R, class Step>
INVAR_INLINE void sum_taps(const float* x, const int64_t* offset, int64_t k, float* to, Step step) {
  F y[R];
  num::INVAR_ISA_NS::contract<R>(
      k,
      [&](int64_t begin, int64_t end, F(&c)[R]) __attribute__((always_inline)) {
        F acc[R];
#pragma GCC unroll 32
        for (int v = 0; v < R; ++v) acc[v] = zero();
        for (int64_t t = begin; t < end; ++t) {
          const float* at = x + offset[t];
#pragma GCC unroll 32
          for (int v = 0; v < R; ++v) acc[v] = step(acc[v], load(at + v * kW), t);
        }
#pragma GCC unroll 32
        for (int v = 0; v < R; ++v) c[v] = acc[v];
      },
      y);
  for (int v = 0; v < R; ++v) store(to + v * kW, y[v]);
}
// The same for n outputs, and up to kSlideSlack more.
template <class Step>
INVAR_INLINE void sum_taps(const float* x, const int64_t* offset, int64_t k, int64_t n, float* to,
                           Step step) {
  int64_t j = 0;
  for (; n - j > 2 * kW; j += kSlideVectors * kW) sum_taps<kSlideVectors>(x + j, offset, k, to + j, step);
  if (j < n) sum_taps<2>(x + j, offset, k, to + j, step);
}

// Element 0 of row i of a block in a channel of the result; rows lie together if together(b).
INVAR_INLINE int64_t row_place(const Axis (&a)[kAxes], const Block& b, int64_t i) {
  return ((b.of[0].start + b.deep * b.of[0].step) * a[1].out + b.of[1].start + (b.row + i) * b.of[1].step) *
             a[2].out +
         b.of[2].start + b.column * b.of[2].step;
}
// Stores value(j) lanes, j = 0, kW, ..., as row i of a block by the store rule; what a vector holds beyond a row is overwritten by
// the next one where rows lie together.
template <class Value>
INVAR_INLINE void put_row(const Axis (&a)[kAxes], const Block& b, int64_t i, float* channel, float* spare,
                          Value value) {
  float* to = channel + row_place(a, b, i);
  const int64_t n = b.columns;
  if (b.of[2].step != 1) {
    for (int64_t j = 0; j < n; j += kW) put(spare + j, value(j));
    for (int64_t j = 0; j < n; ++j) to[j * b.of[2].step] = spare[j];
    return;
  }
  const int64_t room = n == a[2].out && b.of[1].step == 1 ? n * (b.rows - i) : n;
  for (int64_t j = 0; j < n; j += kW) {
    if (j + kW <= room)
      put(to + j, value(j));
    else
      put_n(to + j, value(j), static_cast<int>(n - j));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
