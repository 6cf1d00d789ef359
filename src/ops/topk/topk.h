// The shape of a topk call, shared by all rows.
#pragma once
#include "kernels/call.h"
#include "kernels/float_order.h"
#include "ops/topk/attributes.h"

namespace invar::ops {

struct TopkShape : AxisExtents {
  int64_t k;
  bool largest;
};
TopkShape topk_shape(const Call&);
int64_t topk_units(const Call&, int phase);  // rows
size_t topk_scratch(const Call&);

}  // namespace invar::ops
