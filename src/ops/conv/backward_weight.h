// The gradient of a convolution's weights as a product of matrices
// (conv_backward_weight.2): rows are output channels, columns are (channel, tap), K is (image,
// output pixel). Plain index arithmetic, shared by all devices.
#pragma once
#include "kernels/sliding_window.h"

namespace invar::ops::conv {

using slide::kAxes;

struct BackwardWeight {
  int64_t images, groups;
  int64_t rows, channels;  // of grad and x, per group
  int64_t taps, columns;   // per channel; channels * taps
  int64_t pixels, plane;   // elements of a channel of grad, of x
  int64_t k;               // images * pixels
  struct {
    int64_t in, out, kernel, stride, dilation, pad;
  } axis[kAxes];
  INVAR_INLINE int64_t outputs(const BackwardWeight& p) { return p.groups * p.rows * p.columns; }
};
BackwardWeight backward_weight(const Call&);
const char* check_backward_weight(const Call&);

// The work of a CPU: units of [group][segment][block of rows][run of panels].
struct BackwardPartition {
  int64_t segments;          // of K in use
  int64_t rows, row_blocks;  // rows of a block
  int64_t panels, run, runs;
  INVAR_INLINE int64_t units(const BackwardPartition& c, int64_t groups) {
    return groups * c.segments * c.row_blocks * c.runs;
  }
};
BackwardPartition backward_partition(const BackwardWeight&, int panel, int tallest);

}  // namespace invar::ops::conv
