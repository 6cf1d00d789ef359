// Windows that slide over up to three spatial axes, for rooms that have them: which taps an output has, where they lie in a copy
// of the operand that is padded and split by stride, and how outputs are cut into blocks. Plain index arithmetic, shared by all
// devices; out-of-line functions read shapes and attributes.
#pragma once
#include "num/contract/schedule.h"
#include "kernels/call.h"

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

// One spatial axis. The copy of a channel holds `planes` planes of `length` positions: position i of plane p is element
// i * step + p * dilation % step + low of the operand (+0 outside), where step is the stride, or 1 if transposed. So each tap of
// neighbouring outputs reads neighbouring positions of one plane.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0, end_pad = 0;
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

// What attributes strides, dilations and pads (absent: 1, 1, 0) say of axis i.
Axis axis_of(const Attrs&, int i, int axes, int64_t kernel, bool transposed);
// Sets what follows from kernel, stride, dilation, pad, out and transposed.
void complete(Axis&);
// Sets the sizes of operand and result; an axis that is only carried along and the one before it become one longer axis; completes.
void fit(const View& x, const View& out, Axis (&)[kAxes]);
int64_t item(const Attrs&, const char* name, int i, int64_t fallback);  // of a list
bool has_length(const Attrs&, const char* name, int n);                 // or is absent

constexpr int64_t kMostElements = int64_t{1} << 46;  // beyond any memory, and far from overflow
constexpr int64_t kMostSetting = int64_t{1} << 30;
// n *= by; false where that is more than any memory holds.
bool within(int64_t& n, int64_t by);
bool within(const View&);
// Null, or what is required: of an operand [N, C, ...] and its attributes; of axis i.
const char* check_lists(const View& x, const Attrs&);
const char* check_axis(const View& x, const Attrs&, int i, int64_t kernel);

// Outputs of one phase and channel at one place on the first axis, in blocks of `rows` x `columns`. Each is computed from a copy of
// its own of `floats` elements, [taps of the first axis][planes][planes][lines][pitch]; 0 floats: too large.
struct BlockCut {
  int64_t deep, rows, columns, row_blocks, column_blocks;
  int64_t pitch, lines, floats;
  int64_t each, chunks;  // channels of a unit, units of all channels
};
BlockCut block_cut(const Axis (&)[kAxes], int64_t images, int64_t channels);

// Units: [phase][image][place on the first axis][row block][column block][chunk of channels].
INVAR_INLINE int64_t block_units(const Axis (&a)[kAxes], const BlockCut& c, int64_t images) {
  return phases_of(a[0]) * phases_of(a[1]) * phases_of(a[2]) * images * c.deep * c.row_blocks *
         c.column_blocks * c.chunks;
}
struct Block {
  Phase of[kAxes];
  int64_t phase, image, channel, channels;
  int64_t deep, row, rows, column, columns;  // no rows or columns: nothing to do
};
INVAR_INLINE Block block_at(const Axis (&a)[kAxes], const BlockCut& c, int64_t images, int64_t all,
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
