// Convolutions as contractions over columns of a padded copy of the operand (spec.md conv.2, conv_transpose.2): which taps an
// output has, where they lie in the copy, how the work is cut. Plain index arithmetic, shared by all devices.
#pragma once
#include "num/contract/schedule.h"
#include "ops/call.h"

namespace invar::ops::conv {

constexpr int kAxes = 3;  // spatial; missing ones are in front, of length 1

INVAR_INLINE int64_t ceil_div(int64_t a, int64_t b) {  // b > 0
  return a / b + (a % b > 0);
}
INVAR_INLINE int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b, b = r;
  }
  return a;
}

// One spatial axis. The copy of a channel holds `planes` planes of `length` positions: position i of plane p is element
// i * step + p * dilation % step + low of the operand (+0 outside), where step is the stride, or 1 if transposed. So each tap of
// neighbouring outputs reads neighbouring positions of one plane.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  bool transposed = false;
  int64_t hop = 1;      // taps of one output are this far apart
  int64_t classes = 1;  // sets of taps that outputs have: first + hop * t for first < classes
  int64_t planes = 1, length = 1, low = 0;
};
INVAR_INLINE int64_t taps_of(const Axis& a, int64_t first) {
  return first < a.kernel ? (a.kernel - first + a.hop - 1) / a.hop : 0;
}

// The outputs of an axis that share their taps: start + step * j for j < count. Tap t reads position j + shift of its plane.
struct Phase {
  int64_t start, step, count;
  int64_t first, taps;
  int64_t shift, shift_hop;  // transposed: of tap 0, and from tap to tap
};
INVAR_INLINE int64_t phases_of(const Axis& a) {
  return a.transposed ? num::min_i64(a.stride, a.out) : 1;
}
INVAR_INLINE Phase phase_of(const Axis& a, int64_t i) {
  if (!a.transposed) return {0, 1, a.out, 0, a.kernel, 0, 0};
  Phase p{i, a.stride, ceil_div(a.out - i, a.stride), 0, 0, 0, -(a.hop * a.dilation / a.stride)};
  while (p.first < a.classes && (i + a.pad - p.first * a.dilation) % a.stride != 0) ++p.first;
  if (p.first == a.classes) return p;  // no tap hits these outputs
  p.taps = taps_of(a, p.first);
  p.shift = (i + a.pad - p.first * a.dilation) / a.stride - a.low;
  return p;
}
struct Tap {
  int64_t plane, shift;
};
INVAR_INLINE Tap tap_of(const Axis& a, const Phase& p, int64_t t) {
  if (a.transposed) return {0, p.shift + t * p.shift_hop};
  return {t % a.planes, t * a.dilation / a.stride};
}

// The weights alone: shape, dtype and attributes are all that packing knows.
struct Weights {
  int64_t groups, channels, rows;
  Axis axis[kAxes];
  bool thin;
};
struct Plan {
  int64_t images, groups;
  int64_t channels, rows;  // of the operand and the result, in a group
  Axis axis[kAxes];
  Weights weights;  // with these axes
  bool copied;      // else the operand itself is the copy
  bool thin;        // one channel and few rows in a group
  int64_t channel;  // elements of a channel in the copy
  int64_t line;     // elements that lie together there: the planes of the last axis
};

Weights weights_of(const View& w, const Attrs&, bool transposed);
Plan plan_of(const Call&, bool transposed);
// Null, or what is wrong with a call.
const char* check(const Call&, bool transposed);

// Element (row, channel, tap) of the weights, which lie as ONNX has them: [M, C / groups, taps] or [C, M / groups, taps].
INVAR_INLINE int64_t weight_at(const Weights& w, bool transposed, int64_t group, int64_t row, int64_t channel,
                               int64_t tap) {
  const int64_t taps = w.axis[0].kernel * w.axis[1].kernel * w.axis[2].kernel;
  return transposed ? ((group * w.channels + channel) * w.rows + row) * taps + tap
                    : ((group * w.rows + row) * w.channels + channel) * taps + tap;
}

// One phase of all axes, and its contraction.
struct Phases {
  Phase of[kAxes];
  int64_t taps, k;  // of one output; taps * channels
  int64_t columns;  // outputs of a channel
};
INVAR_INLINE Phases phases_at(const Plan& p, int64_t i) {
  Phases r{};
  for (int d = kAxes - 1; d >= 0; --d) {
    const int64_t n = phases_of(p.axis[d]);
    r.of[d] = phase_of(p.axis[d], i % n);
    i /= n;
  }
  r.taps = r.of[0].taps * r.of[1].taps * r.of[2].taps;
  r.k = r.taps * p.channels;
  r.columns = r.of[0].count * r.of[1].count * r.of[2].count;
  return r;
}

// Sizes are tuning. Units of the main phase: [phase][image][group][row block][run of panels of columns].
struct Cut {
  bool merged;  // columns of all images are one sequence
  int64_t phases, images;
  int64_t rows, row_blocks;
  int64_t panels, run, runs;
  INVAR_INLINE int64_t units(const Cut& c, int64_t groups) {
    return c.phases * c.images * groups * c.row_blocks * c.runs;
  }
};
Cut cut_of(const Plan&, int panel, int tallest);

// Units of copying: lines of the copy, several at a time.
struct CopyCut {
  int64_t lines, each, units;
};
CopyCut copy_cut(const Plan&);

// Thin groups: blocks of `rows` x `columns` outputs of one phase, image, row and first-axis position, from a copy of their own
// of `floats` elements; 0: too large.
struct ThinCut {
  int64_t rows, columns, row_blocks, column_blocks;
  int64_t pitch, lines;  // of the copy: elements from row to row, rows
  int64_t floats;
};
ThinCut thin_cut(const Plan&);

}  // namespace invar::ops::conv
