// Convolution as a GEMM over a padded copy of the operand (conv.2, conv_transpose.2):
// geometry and work partition. Plain index arithmetic, shared by all devices.
#pragma once
#include "kernels/sliding_window.h"
#include "ops/conv/attributes.h"

namespace invar::ops::conv {

using slide::Axis;
using slide::AxisPhase;
using slide::kAxes;

// The layout of packed weights: packing sees only their shape, dtype and attributes.
struct WeightLayout {
  int64_t groups, channels, rows;
  Axis axis[kAxes];
  bool depthwise;
  bool pixel_major;  // packed as columns of B (panels of output channels); else as rows of A
};
struct ConvGeometry {
  int64_t images, groups;
  int64_t channels, rows;  // of operand and result, per group
  Axis axis[kAxes];
  WeightLayout weights;  // with these axes
  bool padded_copy;      // a padded copy is made; else the operand itself serves as the copy
  bool nhwc_operand;     // pixel_major: the operand is NHWC and is read in place
  bool indirect;         // pixel_major: through an indirection buffer into the operand or an unpadded copy
  bool skips_padding;    // indirect, and so many taps fall into the padding that tiles test for it
  bool depthwise;        // depthwise: one channel and few rows per group
  bool pixel_major;      // GEMM rows are pixels, columns are output channels (NHWC order)
  int64_t pitch;         // pixel_major: elements from one pixel to the next
  int64_t channel;       // elements per channel in the copy
  int64_t line;          // contiguous elements there: the planes of the last axis
};

// With `pixel_major` the layout is pixel-major even where another would be faster, as NHWC rows
// need it.
WeightLayout weight_layout(const View& w, const Attributes&, bool transposed, bool pixel_major = false);
ConvGeometry geometry_of(const Call&, bool transposed, bool pixel_major = false);
// The pixel pitch of NHWC tensors: the smallest that keeps the rows of a tile out of each other's
// L1 cache sets.
INVAR_INLINE int64_t pitch_of(int64_t channels) {
  return channels + (channels % num::kChain ? 0 : channels % 1024 ? 16 : 272);
}
// Tells whether a convolution with these weights can run pixel-major for any operand.
bool takes_channels_last(const View& w, const Attributes&);
// Null, or why a call is invalid.
const char* check(const Call&, bool transposed);
const char* check_exact16(const Call&);

// Index of element (row, channel, tap) in the ONNX layout of the weights: [M, C / groups, taps] or
// [C, M / groups, taps].
INVAR_INLINE int64_t weight_at(const WeightLayout& w, bool transposed, int64_t group, int64_t row,
                               int64_t channel, int64_t tap) {
  const int64_t taps = w.axis[0].kernel * w.axis[1].kernel * w.axis[2].kernel;
  return transposed ? ((group * w.channels + channel) * w.rows + row) * taps + tap
                    : ((group * w.rows + row) * w.channels + channel) * taps + tap;
}

// One phase of all axes, and the contraction of its outputs.
struct ConvPhase {
  AxisPhase of[kAxes];
  int64_t taps, k;  // per output; k = taps * channels
  int64_t columns;  // outputs per channel
};
INVAR_INLINE ConvPhase phase_at(const ConvGeometry& p, int64_t i) {
  ConvPhase r{};
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

// Pixel-major, the copy is [image, group][position][position][position][channel]: a tap reads
// contiguous channels, and adjacent taps of the last axis are contiguous too. Below: the copied
// part of axis d; with an indirection buffer the axis is copied unchanged.
INVAR_INLINE Axis copied_axis(const ConvGeometry& p, int d) {
  Axis a = p.axis[d];
  if (p.indirect) a.out = a.in, a.kernel = a.stride = 1, a.low = 0;
  return a;
}
// For an axis with one tap only the elements that outputs read are copied: `hop` apart.
INVAR_INLINE int64_t copied_hop(const Axis& a) {
  return a.transposed || a.kernel > 1 ? 1 : a.stride;
}
INVAR_INLINE int64_t positions_of(const Axis& a) {
  return a.transposed ? a.length : (a.out - 1) * (a.stride / copied_hop(a)) + (a.kernel - 1) * a.dilation + 1;
}
INVAR_INLINE int64_t position_of(const Axis& a,
                                 int64_t j) {  // of tap 0 of the j-th output of a phase, without shift_of
  return a.transposed ? j : j * a.stride;
}
INVAR_INLINE int64_t shift_of(const Axis& a, const AxisPhase& p, int64_t t) {
  return a.transposed ? p.shift + t * p.shift_hop : t * a.dilation;
}
// Pixel-major units: [phase][group][block of pixels of all images][run of panels of output
// channels].
struct PixelPartition {
  int64_t phases, pixels, rows, blocks, panels, run, runs;
};
PixelPartition pixel_partition(const ConvGeometry&, int panel, int tallest);

// Sizes are tuning. Units of the main phase: [phase][image][group][run of column panels][row
// block].
struct GemmPartition {
  bool merged;  // the columns of all images form one sequence
  int64_t phases, images;
  int64_t rows, row_blocks;
  int64_t panels, run, runs;
  INVAR_INLINE int64_t units(const GemmPartition& c, int64_t groups) {
    return c.phases * c.images * groups * c.row_blocks * c.runs;
  }
};
GemmPartition gemm_partition(const ConvGeometry&, int panel, int tallest);

// Units of the copy: several lines each; pixel-major, split by `channels` channels into `parts`.
struct CopyPartition {
  int64_t lines, each, units;
  int64_t parts = 1, channels = 0;
};
CopyPartition copy_partition(const ConvGeometry&);

}  // namespace invar::ops::conv
