// Sliding windows over up to three spatial axes (convolution, pooling): the taps of an output,
// their positions in a padded copy of the operand that is split by stride, and the tiling of
// outputs. Plain index arithmetic, shared by all devices; out-of-line functions read shapes and
// attributes.
#pragma once
#include "kernels/call.h"
#include "num/contract/schedule.h"

namespace invar::ops::slide {

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

// One spatial axis. The copy of a channel holds `planes` planes of `length` positions. Position i
// of plane p is element i * step + p * dilation % step + low of the operand (+0 outside), where
// step is the stride, or 1 if transposed. So each tap of adjacent outputs reads adjacent positions
// of one plane.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0, end_pad = 0;
  bool transposed = false;
  int64_t hop = 1;      // distance between the taps of one output
  int64_t classes = 1;  // distinct tap sets of outputs: first + hop * t for first < classes
  int64_t planes = 1, length = 1, low = 0;
};
INVAR_INLINE int64_t taps_of(const Axis& a, int64_t first) {
  return first < a.kernel ? (a.kernel - first + a.hop - 1) / a.hop : 0;
}

// The outputs of an axis that share their taps (a phase of the polyphase decomposition of a
// transposed convolution): start + step * j for j < count. TapOffset t reads position j + shift of
// its plane.
struct AxisPhase {
  int64_t start, step, count;
  int64_t first, taps;
  int64_t shift, shift_hop;  // transposed: shift of tap 0, and from tap to tap
};
INVAR_INLINE int64_t phases_of(const Axis& a) {
  return a.transposed ? num::min_i64(a.stride, a.out) : 1;
}
INVAR_INLINE AxisPhase phase_of(const Axis& a, int64_t i) {
  if (!a.transposed) return {0, 1, a.out, 0, a.kernel, 0, 0};
  AxisPhase p{i, a.stride, ceil_div(a.out - i, a.stride), 0, 0, 0, -(a.hop * a.dilation / a.stride)};
  while (p.first < a.classes && (i + a.pad - p.first * a.dilation) % a.stride != 0) ++p.first;
  if (p.first == a.classes) return p;  // no tap hits these outputs
  p.taps = taps_of(a, p.first);
  p.shift = (i + a.pad - p.first * a.dilation) / a.stride - a.low;
  return p;
}
struct TapOffset {
  int64_t plane, shift;
};
INVAR_INLINE TapOffset tap_of(const Axis& a, const AxisPhase& p, int64_t t) {
  if (a.transposed) return {0, p.shift + t * p.shift_hop};
  return {t % a.planes, t * a.dilation / a.stride};
}

// The attributes of a window, of each spatial axis; pads are all begins, then all ends.
struct Window {
  IntegerList strides, dilations, pads;
};
Axis axis_of(const Window&, int i, int axes, int64_t kernel, bool transposed);
// Sets the fields that follow from kernel, stride, dilation, pad, out and transposed.
void derive_axis(Axis&);
// Sets the sizes of operand and result, merges an innermost axis with a trivial window into the
// axis before it, and derives the rest.
void fit_axes(const View& x, const View& out, Axis (&)[kAxes]);

constexpr int64_t kMostElements = int64_t{1} << 46;  // beyond any memory, and far from overflow
constexpr int64_t kMostSetting = int64_t{1} << 30;
// n *= by; false if the product exceeds any memory.
bool within(int64_t& n, int64_t by);
bool within(const View&);
// Null, or what is required of an operand [N, C, ...] and its attributes, and of axis i.
const char* check_lists(const View& x, const Window&);
const char* check_axis(const View& x, const Window&, int i, int64_t kernel);

// The tiling of the outputs of one phase and channel at one depth (first axis): tiles of `rows` x
// `columns`. Each is computed from its own copy of `floats` elements, [taps of the first
// axis][planes][planes][lines][pitch]. If floats is 0, the tile is too large.
struct BlockTiling {
  int64_t deep, rows, columns, row_blocks, column_blocks;
  int64_t pitch, lines, floats;
  int64_t each, chunks;  // channels per unit, units that cover all channels
};
BlockTiling block_tiling(const Axis (&)[kAxes], int64_t images, int64_t channels);

// Units: [phase][image][depth][row block][column block][channel block].
INVAR_INLINE int64_t block_units(const Axis (&a)[kAxes], const BlockTiling& c, int64_t images) {
  return phases_of(a[0]) * phases_of(a[1]) * phases_of(a[2]) * images * c.deep * c.row_blocks *
         c.column_blocks * c.chunks;
}
struct Block {
  AxisPhase of[kAxes];
  int64_t phase, image, channel, channels;
  int64_t deep, row, rows, column, columns;  // empty: nothing to do
};
INVAR_INLINE Block block_at(const Axis (&a)[kAxes], const BlockTiling& c, int64_t images, int64_t all,
                            int64_t unit) {
  Block b{};
  b.channel = unit % c.chunks * c.each, unit /= c.chunks;
  b.channels = num::min_i64(c.each, all - b.channel);
  b.column = unit % c.column_blocks * c.columns, unit /= c.column_blocks;
  b.row = unit % c.row_blocks * c.rows, unit /= c.row_blocks;
  b.deep = unit % c.deep, unit /= c.deep;
  b.image = unit % images, b.phase = unit / images;
  for (int64_t d = kAxes - 1, phase = b.phase; d >= 0; --d) {
    b.of[d] = phase_of(a[d], phase % phases_of(a[d]));
    phase /= phases_of(a[d]);
  }
  b.rows = b.deep < b.of[0].count ? num::min_i64(c.rows, b.of[1].count - b.row) : 0;
  b.columns = num::min_i64(c.columns, b.of[2].count - b.column);
  return b;
}

}  // namespace invar::ops::slide
