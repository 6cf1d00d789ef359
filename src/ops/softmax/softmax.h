// Softmax along any axis: x as [outer, n, inner]. inner = 1: rows lie along memory.
#pragma once
#include "ops/call.h"

namespace invar::ops {

struct SoftmaxShape {
  int64_t outer, n, inner;
  int64_t width, blocks;  // columns at a time, where rows lie across memory; blocks of them in `inner`
};
SoftmaxShape softmax_shape(const Call&);
int64_t softmax_units(const Call&, int phase);
size_t softmax_scratch(const Call&);

}  // namespace invar::ops
