// What the rows of softmax and log_softmax share.
#pragma once
#include "ops/call.h"

namespace invar::ops {

Columns softmax_columns(const Call&);
int64_t softmax_units(const Call&, int phase);
size_t softmax_scratch(const Call&);

}  // namespace invar::ops
