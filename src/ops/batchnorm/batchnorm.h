// The shape of a batchnorm call, shared by all rows. x is [B, C, spatial ...].
#pragma once
#include "kernels/call.h"

namespace invar::ops::batchnorm {

struct Geometry {
  int64_t channels, spatial;  // elements per channel of one sample
};
Geometry geometry(const Call&);
// One channel of one sample; whole samples if a channel is one element, so that lanes are channels.
int64_t units(const Call&, int phase);

}  // namespace invar::ops::batchnorm
