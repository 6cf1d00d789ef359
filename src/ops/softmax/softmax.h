// What the rows of softmax and log_softmax share.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

Columns softmax_columns(const Call&);
int64_t softmax_units(const Call&, int phase);
size_t softmax_scratch(const Call&);
// How many segments (reduction.1) the rows are shared out by where they are few and long and lie along memory; else 0.
int64_t softmax_segments(const Call&);
size_t softmax_shared(const Call&);

}  // namespace invar::ops
