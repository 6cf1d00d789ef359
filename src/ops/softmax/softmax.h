// Work units and scratch of the operations, shared by the CPU kernels.
#pragma once
#include "kernels/call.h"
#include "ops/softmax/attributes.h"

namespace invar::ops {

ColumnBlocks softmax_columns(const Call&);
int64_t softmax_units(const Call&, int phase);
size_t softmax_scratch(const Call&);
// Segments per row (reduction.1) if the rows are few, long and contiguous, so that segments are
// work units; else 0.
int64_t softmax_segments(const Call&);
size_t softmax_shared(const Call&);
int64_t softmax_backward_units(const Call&, int phase);  // rows, or blocks of columns
int64_t cross_entropy_units(const Call&, int phase);     // rows

}  // namespace invar::ops
