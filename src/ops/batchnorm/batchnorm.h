// What the rows of batchnorm share. x is [B, C, spatial ...].
#pragma once
#include "kernels/call.h"

namespace invar::ops::batchnorm {

struct Geometry {
  int64_t channels, spatial;  // elements of one channel of one sample
};
Geometry geometry(const Call&);
// Channels of samples; whole samples where a channel is one element, so that lanes can be channels.
int64_t units(const Call&, int phase);

}  // namespace invar::ops::batchnorm
