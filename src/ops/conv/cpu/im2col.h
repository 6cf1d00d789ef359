// im2col: the padded copy of the operand, and its columns as panels of B. K is (taps, channels),
// channels fastest. Nothing is computed. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_packing.h"
#include "kernels/cpu/window_copies.h"
#include "ops/conv/conv.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kSlack = 64;  // floats after copies that may be read or written

// Copies lines [begin, end): [image, group, channel][planes of three axes][position][position],
// each of p.line elements.
void copy_lines(const conv::ConvGeometry& p, const float* x, int64_t begin, int64_t end, float* copy) {
  const Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  const int64_t lines = deep.length * high.length;
  for (int64_t plane = 0; plane < wide.planes; ++plane) {
    const PaddedRun all = padded_run(wide, plane, 0, wide.length), none{0, 0, 0, 1};
    for (int64_t line = begin; line < end; ++line) {
      int64_t rest = line;
      const int64_t j = rest % high.length, i = (rest /= high.length) % deep.length;
      const int64_t q = (rest /= deep.length) % high.planes, r = (rest /= high.planes) % deep.planes;
      const int64_t channel = rest / deep.planes, d = element(deep, r, i), h = element(high, q, j);
      float* to = copy + channel * p.channel +
                  ((r * high.planes + q) * wide.planes + plane) * lines * wide.length +
                  (i * high.length + j) * wide.length;
      const bool inside = d >= 0 && d < deep.in && h >= 0 && h < high.in;
      copy_padded_run<false>(inside ? all : none,
                             inside ? x + ((channel * deep.in + d) * high.in + h) * wide.in : x, 0,
                             wide.length, 0, to);
    }
  }
}

// Offset of tap (t0, t1, t2) of output 0 in a channel of the copy.
INVAR_INLINE int64_t tap_offset(const conv::ConvGeometry& p, const conv::ConvPhase& f,
                                const int64_t (&t)[kAxes]) {
  int64_t plane = 0, shift = 0, size = 1;
  for (int d = 0; d < kAxes; ++d) {
    const slide::TapOffset tap = slide::tap_of(p.axis[d], f.of[d], t[d]);
    plane = plane * p.axis[d].planes + tap.plane;
    shift = shift * p.axis[d].length + tap.shift;
    size *= p.axis[d].length;
  }
  return plane * size + shift;
}

// A cursor over (taps, channels) of a contraction.
struct TapCursor {
  int64_t t[kAxes], channel;
};
INVAR_INLINE TapCursor cursor_at(const conv::ConvGeometry& p, const conv::ConvPhase& f, int64_t k) {
  TapCursor w{{0, 0, 0}, k % p.channels};
  int64_t tap = k / p.channels;
  for (int d = kAxes - 1; d >= 0; --d) w.t[d] = tap % f.of[d].taps, tap /= f.of[d].taps;
  return w;
}
INVAR_INLINE void next_tap(const conv::ConvPhase& f, TapCursor& w) {
  w.channel = 0;
  for (int d = kAxes - 1; d >= 0; --d) {
    if (++w.t[d] < f.of[d].taps) return;
    w.t[d] = 0;
  }
}

// Adjacent columns that are contiguous in the copy, at most one vector.
struct ColumnRun {
  int at, count;
  int64_t from;
};
// Splits columns [begin, begin + n) of an image (or of all images), n <= kPanel, into runs.
INVAR_INLINE int column_runs_of(const conv::ConvGeometry& p, const conv::ConvPhase& f, int64_t begin,
                                int64_t n, ColumnRun (&piece)[kPanel]) {
  const int64_t wide = f.of[2].count, high = f.of[1].count, image = p.groups * p.channels * p.channel;
  int count = 0;
  int64_t row = begin / wide, j = begin % wide;
  for (int64_t done = 0; done < n; ++row, j = 0) {
    const int64_t rows = f.of[0].count * high;
    const int64_t base =
        row / rows * image + (row % rows / high * p.axis[1].length + row % high) * p.axis[2].length;
    for (; j < wide && done < n; ++count) {
      const int64_t length = num::min_i64(num::min_i64(wide - j, n - done), kW);
      piece[count] = {static_cast<int>(done), static_cast<int>(length), base + j};
      done += length, j += length;
    }
  }
  return count;
}

// Packs rows [begin, end) of K of one panel. kCopied: elements after a run may be read; they are
// overwritten by the next run, and those of the last run by the next row of K or never used.
template <bool kCopied>
INVAR_INLINE void copy_columns(const conv::ConvGeometry& p, const conv::ConvPhase& f, const float* x,
                               const ColumnRun* piece, int pieces, int64_t begin, int64_t end, float* out) {
  TapCursor w = cursor_at(p, f, begin);
  for (int64_t k = begin; k < end; next_tap(f, w)) {
    const float* tap = x + w.channel * p.channel + tap_offset(p, f, w.t);
    const int64_t channels = num::min_i64(end - k, p.channels - w.channel);
    float* to = out + (k - begin) * kPanel;
    k += channels;
    if (pieces == kVectorsPerPanel && piece[kVectorsPerPanel - 1].at == kPanel - kW &&
        piece[kVectorsPerPanel - 1].count == kW) {  // all are full
      int64_t at[kVectorsPerPanel];
      for (int v = 0; v < kVectorsPerPanel; ++v) at[v] = piece[v].from;
      for (int64_t c = 0; c < channels; ++c)
        for (int v = 0; v < kVectorsPerPanel; ++v)
          store(to + c * kPanel + v * kW, load(tap + c * p.channel + at[v]));
      continue;
    }
    for (int64_t c = 0; c < channels; ++c)
      for (int i = 0; i < pieces; ++i) {
        const float* from = tap + c * p.channel + piece[i].from;
        store(to + c * kPanel + piece[i].at,
              kCopied || piece[i].count == kW ? load(from) : load_n(from, piece[i].count));
      }
  }
}

// Tells whether column n of an image is at position n of every tap.
INVAR_INLINE bool has_contiguous_columns(const conv::ConvGeometry& p, const conv::ConvPhase& f) {
  const bool lines = p.axis[2].length == f.of[2].count || f.of[1].count * f.of[0].count == 1;
  return lines && (p.axis[1].length == f.of[1].count || f.of[0].count == 1);
}
// The same for `panels` panels of such contiguous columns from x on, one row of K of all of them at
// a time, in memory order.
constexpr int64_t kPanelStride =
    kPanel * num::kChain + 16;  // stride of packed panels: avoids L1 bank conflicts
INVAR_INLINE void copy_panels(const conv::ConvGeometry& p, const conv::ConvPhase& f, const float* x,
                              int64_t panels, int64_t begin, int64_t end, float* out) {
  TapCursor w = cursor_at(p, f, begin);
  for (int64_t k = begin; k < end; next_tap(f, w)) {
    const float* tap = x + w.channel * p.channel + tap_offset(p, f, w.t);
    const int64_t channels = num::min_i64(end - k, p.channels - w.channel);
    for (int64_t c = 0; c < channels; ++c, ++k) {
      const float* from = tap + c * p.channel;
      float* to = out + (k - begin) * kPanel;
      for (int64_t i = 0; i < panels; ++i) {
        __builtin_prefetch(from + 4 * p.channel + i * kPanel);
        for (int v = 0; v < kVectorsPerPanel; ++v)
          store(to + i * kPanelStride + v * kW, load(from + i * kPanel + v * kW));
      }
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
