// Depthwise convolution: each tap is a vector of adjacent outputs times one weight, read from a
// padded tile (kernels/cpu/window_copies.h). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_epilogue.h"
#include "kernels/cpu/gemm_microkernel.h"
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

// Tiles of K x K taps that are S apart, a line of the copy and its planes by the stride `high` and
// `wide` elements apart.
struct SquareTaps {
  int kernel = 0, stride = 0;  // 0: the taps are others
  int64_t pitch, high = 0, wide = 0;
  SquareTaps(const Axis (&a)[kAxes], int64_t pitch_of_copy, const int64_t* offset) : pitch(pitch_of_copy) {
    const int64_t k = a[2].kernel;
    if (a[0].kernel != 1 || a[0].transposed || a[1].transposed || a[2].transposed || a[1].kernel != k ||
        a[1].stride != a[2].stride || a[2].stride > 2 || a[1].dilation != 1 || a[2].dilation != 1 ||
        (k != 3 && k != 5) || !fits(k, 4))
      return;
    kernel = static_cast<int>(k), stride = static_cast<int>(a[2].stride);
    high = offset[k], wide = offset[1];
  }
  // Whether weights, the sums of `rows` and two vectors are in registers.
  static constexpr bool fits(int64_t k, int64_t rows) {
    return k * k + rows + 2 <= (kAccumulators == 24 ? 32 : 16);
  }
};
// R rows of a tile at once. A vector of the copy is loaded once for all rows that it is a tap of.
// Lines ascend, and places along them, so each result's chain has its order (contraction.2).
template <int K, int S, int R>
[[gnu::noinline]] void square_rows(const float* x, const SquareTaps& taps, const float* w, int64_t columns,
                                   const ChannelEnd& last, float* to, int64_t stride) {
  const int64_t pitch = taps.pitch, high = taps.high, wide = taps.wide;
  F each[K * K];
#pragma GCC unroll 32
  for (int t = 0; t < K * K; ++t) each[t] = in_register(set1(w[t]));
  for (int64_t j = 0; j < columns; j += kW, x += kW) {
    F sum[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] = zero();
#pragma GCC unroll 32
    for (int y = 0; y < (R - 1) * S + K; ++y) {
      const float* const line = x + y / S * pitch + y % S * high;
#pragma GCC unroll 8
      for (int v = 0; v < K; ++v) {
        const F tap = in_register(load(line + v / S + v % S * wide));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
          if (y >= r * S && y < r * S + K)
            sum[r] = fma(tap, each[(y - r * S) * K + v], sum[r]);  // contraction.2
      }
    }
    const int lanes = static_cast<int>(num::min_i64(columns - j, kW));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store_part(to + r * stride + j, finish(last, sum[r]), lanes);
  }
}
template <int K, int S>
INVAR_INLINE void square_tile(const float* x, const SquareTaps& taps, const float* w, int64_t rows,
                              int64_t columns, const ChannelEnd& last, float* to, int64_t stride) {
  constexpr int kFew = 4, kMany = SquareTaps::fits(K, 8) ? 8 : kFew;
  int64_t row = 0;
  for (; row + kMany <= rows; row += kMany)
    square_rows<K, S, kMany>(x + row * taps.pitch, taps, w, columns, last, to + row * stride, stride);
  for (; row < rows; row += kFew) {  // the last rows once more, if few are left
    if (row + kFew > rows) row = rows - kFew;
    square_rows<K, S, kFew>(x + row * taps.pitch, taps, w, columns, last, to + row * stride, stride);
  }
}
// False: nothing is done.
INVAR_INLINE bool square_tile(const float* x, const SquareTaps& taps, const float* w, int64_t rows,
                              int64_t columns, const ChannelEnd& last, float* to, int64_t stride) {
  if (taps.kernel == 0 || rows < 4) return false;
  auto run = [&](auto k, auto s) __attribute__((always_inline)) {
    square_tile<decltype(k)::value, decltype(s)::value>(x, taps, w, rows, columns, last, to, stride);
  };
  auto by_stride = [&](auto k) __attribute__((always_inline)) {
    if (taps.stride == 1)
      run(k, TileRows<1>{});
    else
      run(k, TileRows<2>{});
  };
  if (taps.kernel == 3) by_stride(TileRows<3>{});
  if constexpr (SquareTaps::fits(5, 4))
    if (taps.kernel == 5) by_stride(TileRows<5>{});
  return true;
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
      // contraction.2: a single chain, whose join with +0 finish() may leave out.
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
