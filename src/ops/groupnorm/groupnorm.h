// What the rows of groupnorm share. x is [B, C, spatial ...]; a row is one group of one sample, contiguous.
#pragma once
#include "kernels/call.h"

namespace invar::ops::groupnorm {

struct Geometry {
  int64_t groups, channels, spatial;  // channels of one group; elements of one channel
};
Geometry geometry(const Call&);
int64_t units(const Call&, int phase);  // rows

}  // namespace invar::ops::groupnorm
