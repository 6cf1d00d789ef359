// Depthwise convolution: each tap is a vector of adjacent outputs times one weight, read from a
// padded tile (kernels/cpu/window_copies.h). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_epilogue.h"
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
  for (float *to = copy, *const end = copy + c.floats + kSlideSlack; to < end; to += kW) store(to, zero());
  return n;
}
// A vector that holds the end of a line writes +0 after it, where the copy is +0 or is written
// later.
INVAR_INLINE void copy_interior(const InteriorLines* inside, int planes, int64_t pitch, const float* x,
                                float* copy) {
  for (const InteriorLines* s = inside; s < inside + planes; ++s) {
    const int64_t whole = s->count / kW * kW;
    const int left = static_cast<int>(s->count - whole);
    const float* from = x + s->from;
    float* to = copy + s->to;
    for (int64_t l = 0; l < s->lines; ++l, from += s->from_hop, to += pitch) {
      if (s->step != 1) {
        copy_strided(from, s->step, s->count, to);
        continue;
      }
      for (int64_t i = 0; i < whole; i += kW) store(to + i, load(from + i));
      if (left > 0) store(to + whole, load_n(from + whole, left));
    }
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

// What follows the contraction of a channel: its bias and the store rule (conv.3).
struct ChannelEnd {
  F bias;
  bool biased, plain;  // plain: as in GemmEpilogue
  explicit ChannelEnd(const float* b)
      : bias(set1(b ? *b : 0.0f)), biased(b), plain(b && has_no_small_bias(b, 1)) {}
};
INVAR_INLINE F finish(const ChannelEnd& f, F chain) {
  if (f.plain) return one_nan(add(chain, f.bias));
  const F y = canonicalize(add(zero(), chain));  // contraction.3
  return f.biased ? canonicalize(add(y, f.bias)) : y;
}

// Rows of a tile, `pitch` elements apart in its copy at x, of `columns` results each, `stride`
// apart from `to` on. They are computed as vectors of some rows at once, for K of a single chain. A
// vector may run past its row if rows are contiguous; the next row overwrites the excess.
[[gnu::noinline]] void depthwise_tile(const float* x, int64_t pitch, const int64_t* offset, const float* w,
                                      int64_t k, int64_t rows, int64_t columns, const ChannelEnd& last,
                                      float* to, int64_t stride) {
  constexpr int kR = 8;
  const int64_t vectors = slide::ceil_div(columns, kW), all = rows * vectors;
  const bool contiguous = stride == columns;
  int64_t row = 0, column = 0;
  for (int64_t i = 0; i < all; i += kR) {
    const float* from[kR];
    float* out[kR];
    int64_t room[kR];
    for (int r = 0; r < kR; ++r) {  // beyond the last vector: that one once more
      from[r] = x + row * pitch + column;
      out[r] = to + row * stride + column;
      room[r] = (contiguous ? (rows - row) * columns : columns) - column;
      if (i + r + 1 >= all) continue;
      if ((column += kW) >= columns) column = 0, ++row;
    }
    F sum[kR];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) sum[r] = zero();
    for (int64_t t = 0; t < k; ++t) {
      const F each = set1(w[t]);
      const int64_t at = offset[t];
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) sum[r] = fma(load(from[r] + at), each, sum[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const F y = finish(last, sum[r]);
      if (room[r] >= kW)
        store(out[r], y);
      else
        store_n(out[r], y, static_cast<int>(room[r]));
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
