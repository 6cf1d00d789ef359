// Padded copies for sliding windows, over lanes: of the whole operand, or of one tile of one
// channel. In a tile all output rows have one pitch; the few columns between rows are computed and
// dropped, so a vector may span the end of one row and the start of the next. Compiled once per
// instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "kernels/sliding_window.h"
#include "num/contract/lanes.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using slide::Axis;
using slide::Block;
using slide::BlockTiling;
using slide::kAxes;

// Floats after a tile's copy that vectors may read, and after its outputs that they may write.
constexpr int kSlideVectors = kW == 16 || kW == 4 ? 16 : 8;  // accumulators in flight
constexpr int64_t kSlideSlack = kSlideVectors * kW;

// A run of positions of one plane of an axis: `before` positions of padding, `count` elements of
// the operand from `first` on, then padding.
struct PaddedRun {
  int64_t before, count, first, step;
};
INVAR_INLINE int64_t step_of(const Axis& a) {
  return a.transposed ? 1 : a.stride;
}
// The operand element at position i of plane p of an axis; may be outside.
INVAR_INLINE int64_t element(const Axis& a, int64_t p, int64_t i) {
  return i * step_of(a) + p * a.dilation % step_of(a) + a.low;
}
INVAR_INLINE PaddedRun padded_run(const Axis& a, int64_t plane, int64_t begin, int64_t n) {
  const int64_t step = step_of(a), first = element(a, plane, begin);
  const int64_t before = first < 0 ? num::min_i64(slide::ceil_div(-first, step), n) : 0;
  const int64_t end = first >= a.in ? before : num::min_i64(slide::ceil_div(a.in - first, step), n);
  return {before, end > before ? end - before : 0, first + before * step, step};
}

// Strided gather: to[i] = from[i * step] for i < n, step > 1.
INVAR_INLINE void copy_strided(const float* from, int64_t step, int64_t n, float* to) {
  if (step == 2)
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

// Copies n positions of a run of x, `fill` outside. With kOver, up to one vector more may be
// written; `readable` elements are readable from x on.
template <bool kOver>
INVAR_INLINE void copy_padded_run(const PaddedRun& l, const float* x, int64_t readable, int64_t n, float fill,
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
    copy_strided(source, l.step, l.count, line);
  }
  for (int64_t j = l.before + l.count; j < n; ++j) to[j] = fill;
}

// The first position of an axis that a phase reads from output `begin` on.
INVAR_INLINE int64_t first_position(const Axis& a, const slide::AxisPhase& p, int64_t begin) {
  return begin + (a.transposed ? p.shift + (p.taps - 1) * p.shift_hop : 0);
}

// The copy of one tile of the channel at x, from which `readable` elements are readable; `fill`
// outside. Also writes kSlideSlack floats after it.
INVAR_INLINE void copy_block(const Axis (&a)[kAxes], const BlockTiling& c, const Block& b, const float* x,
                             int64_t readable, float fill, float* to) {
  const Axis &deep = a[0], &high = a[1], &wide = a[2];
  const int64_t from = first_position(high, b.of[1], b.row), step = step_of(high),
                lines = c.lines - c.rows + b.rows;
  for (int64_t t = 0, plane = 0; t < b.of[0].taps; ++t) {
    const slide::TapOffset tap = slide::tap_of(deep, b.of[0], t);
    const int64_t d = element(deep, tap.plane, b.deep + tap.shift);
    for (int64_t q = 0; q < high.planes; ++q) {
      const int64_t top = element(high, q, from);
      for (int64_t r = 0; r < wide.planes; ++r, ++plane) {
        const PaddedRun line = padded_run(wide, r, first_position(wide, b.of[2], b.column), c.pitch);
        for (int64_t i = 0; i < lines; ++i) {
          const int64_t h = top + i * step, at = (d * high.in + h) * wide.in;
          const bool inside = d >= 0 && d < deep.in && h >= 0 && h < high.in;
          float* row = to + (plane * c.lines + i) * c.pitch;
          if (inside)
            copy_padded_run<true>(line, x + at, readable - at, c.pitch, fill, row);
          else
            for (int64_t j = 0; j < c.pitch; ++j) row[j] = fill;
        }
      }
    }
  }
  for (int64_t j = 0; j < kSlideSlack; ++j) to[c.floats + j] = fill;
}

// offset[t]: position of tap t of output 0 in a tile's copy, in row-major order of the taps.
INVAR_INLINE void block_offsets(const Axis (&a)[kAxes], const BlockTiling& c, const Block& b,
                                int64_t* offset) {
  for (int64_t t0 = 0, n = 0; t0 < b.of[0].taps; ++t0)
    for (int64_t t1 = 0; t1 < b.of[1].taps; ++t1)
      for (int64_t t2 = 0; t2 < b.of[2].taps; ++t2, ++n) {
        const slide::TapOffset high = slide::tap_of(a[1], b.of[1], t1),
                               wide = slide::tap_of(a[2], b.of[2], t2);
        const int64_t plane = (t0 * a[1].planes + high.plane) * a[2].planes + wide.plane;
        offset[n] = (plane * c.lines + high.shift - first_position(a[1], b.of[1], 0)) * c.pitch + wide.shift -
                    first_position(a[2], b.of[2], 0);
      }
}

// to[j] for R vectors: step(sum, x[offset[t] + j], t) over the taps t < k, on the schedule of a
// contraction.
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

// Offset of element 0 of row i of a tile in a channel of the result.
INVAR_INLINE int64_t row_offset(const Axis (&a)[kAxes], const Block& b, int64_t i) {
  return ((b.of[0].start + b.deep * b.of[0].step) * a[1].out + b.of[1].start + (b.row + i) * b.of[1].step) *
             a[2].out +
         b.of[2].start + b.column * b.of[2].step;
}
// Stores value(j) lanes, j = 0, kW, ..., as row i of a tile under the store rule. If rows are
// contiguous, a vector may run past a row; the next row overwrites the excess.
template <class Value>
INVAR_INLINE void store_row(const Axis (&a)[kAxes], const Block& b, int64_t i, float* channel, float* spare,
                            Value value) {
  float* to = channel + row_offset(a, b, i);
  const int64_t n = b.columns;
  if (b.of[2].step != 1) {
    for (int64_t j = 0; j < n; j += kW) store_canonical(spare + j, value(j));
    for (int64_t j = 0; j < n; ++j) to[j * b.of[2].step] = spare[j];
    return;
  }
  const int64_t room = n == a[2].out && b.of[1].step == 1 ? n * (b.rows - i) : n;
  for (int64_t j = 0; j < n; j += kW) {
    if (j + kW <= room)
      store_canonical(to + j, value(j));
    else
      store_canonical_n(to + j, value(j), static_cast<int>(n - j));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
