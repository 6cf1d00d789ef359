// Convolutions as contractions over columns of a padded copy of the operand (spec.md conv.2, conv_transpose.2): how the work is
// cut. Plain index arithmetic, shared by all devices.
#pragma once
#include "kernels/sliding_window.h"

namespace invar::ops::conv {

using slide::Axis;
using slide::kAxes;
using slide::Phase;

// The weights alone: shape, dtype and attributes are all that packing knows.
struct Weights {
  int64_t groups, channels, rows;
  Axis axis[kAxes];
  bool thin;
  bool by_place;  // packed as columns, channels of the result; else as rows
};
struct Plan {
  int64_t images, groups;
  int64_t channels, rows;  // of the operand and the result, in a group
  Axis axis[kAxes];
  Weights weights;  // with these axes
  bool copied;      // else the operand itself is the copy
  bool read;        // by place: the operand is read where it lies, its channels last
  bool listed;  // by place: places of each tap are listed, and lie in the operand or in a copy without pads
  bool sparse;  // listed, and so many places of taps lie outside of the operand that tiles are asked for them
  bool thin;    // one channel and few rows in a group
  bool by_place;    // rows of the product are places, columns are channels of the result
  int64_t pitch;    // by place: elements from a place to the next
  int64_t channel;  // elements of a channel in the copy
  int64_t line;     // elements that lie together there: the planes of the last axis
};

// `by_place`: whatever else would be faster, as rows do that take channels last.
Weights weights_of(const View& w, const Attrs&, bool transposed, bool by_place = false);
Plan plan_of(const Call&, bool transposed, bool by_place = false);
// Of places whose channels are last: as few elements as keep the rows of a tile out of each other's way in the first cache.
INVAR_INLINE int64_t pitch_of(int64_t channels) {
  return channels + (channels % num::kChain ? 0 : channels % 1024 ? 16 : 272);
}
// Whether a convolution with these weights can be by place whatever its operand.
bool takes_channels_last(const View& w, const Attrs&);
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
    const int64_t n = slide::phases_of(p.axis[d]);
    r.of[d] = slide::phase_of(p.axis[d], i % n);
    i /= n;
  }
  r.taps = r.of[0].taps * r.of[1].taps * r.of[2].taps;
  r.k = r.taps * p.channels;
  r.columns = r.of[0].count * r.of[1].count * r.of[2].count;
  return r;
}

// By places the copy is [image, group][position][position][position][channel]: what a tap reads for neighbouring channels lies
// together, as do neighbouring taps of the last axis.
// What is copied of axis d: where places are listed, it as it is.
INVAR_INLINE Axis copied_axis(const Plan& p, int d) {
  Axis a = p.axis[d];
  if (p.listed) a.out = a.in, a.kernel = a.stride = 1, a.low = 0;
  return a;
}
// Of an axis with one tap only what outputs read is copied: elements `hop` apart.
INVAR_INLINE int64_t copied_hop(const Axis& a) {
  return a.transposed || a.kernel > 1 ? 1 : a.stride;
}
INVAR_INLINE int64_t positions_of(const Axis& a) {
  return a.transposed ? a.length : (a.out - 1) * (a.stride / copied_hop(a)) + (a.kernel - 1) * a.dilation + 1;
}
INVAR_INLINE int64_t position_of(const Axis& a,
                                 int64_t j) {  // of tap 0 of the j-th output of a phase, but for shift_of
  return a.transposed ? j : j * a.stride;
}
INVAR_INLINE int64_t shift_of(const Axis& a, const Phase& p, int64_t t) {
  return a.transposed ? p.shift + t * p.shift_hop : t * a.dilation;
}
// Units by places: [phase][group][block of places of all images][run of panels of channels].
struct PlaceCut {
  int64_t phases, places, rows, blocks, panels, run, runs;
};
PlaceCut place_cut(const Plan&, int panel, int tallest);

// Sizes are tuning. Units of the main phase: [phase][image][group][run of panels of columns][row block].
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

// Units of copying: lines of the copy, several at a time; by places in parts of so many channels.
struct CopyCut {
  int64_t lines, each, units;
  int64_t parts = 1, channels = 0;
};
CopyCut copy_cut(const Plan&);

}  // namespace invar::ops::conv
