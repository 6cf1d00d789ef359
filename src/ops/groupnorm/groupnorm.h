// The shape of a groupnorm call, shared by all rows. x is [B, C, spatial ...]; a row is one group
// of one sample, contiguous.
#pragma once
#include "kernels/call.h"
#include "ops/groupnorm/attributes.h"

namespace invar::ops::groupnorm {

struct Geometry {
  int64_t groups, channels, spatial;  // channels per group; elements per channel
};
Geometry geometry(const Call&);
int64_t units(const Call&, int phase);  // rows

}  // namespace invar::ops::groupnorm
