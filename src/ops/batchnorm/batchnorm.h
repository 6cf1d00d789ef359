// The shape of a batchnorm call, shared by all kernels. x is [B, C, spatial ...].
#pragma once
#include "kernels/call.h"
#include "ops/batchnorm/attributes.h"

namespace invar::ops::batchnorm {

struct Geometry {
  int64_t channels, spatial;  // elements per channel of one sample
};
Geometry geometry(const Call&);
// The number of units. A unit is one channel of one sample; if a channel has one element, a unit is
// one sample, and the lanes of a vector are channels.
int64_t units(const Call&, int phase);

}  // namespace invar::ops::batchnorm
