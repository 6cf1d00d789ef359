// The part that the kernels of layernorm's and rmsnorm's gradients share: rows, work units and
// shared memory.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

// The gradient of x: operands grad, x and weight.
const char* check_norm_backward(const Call&);
int64_t norm_backward_rows(const Call&, int phase);  // units: rows, each as long as the weight in[2]
bool norm_backward_batch_independent(const Call&, uint64_t batched);

// The gradient of the weight: operands grad and x, of which the dimensions from `axis` on are a
// row.
struct NormWeightRows {
  int64_t rows, n;           // rows of n elements, columns of `rows` elements
  int64_t segments, blocks;  // of a column (reduction.1); of columns, kColumns each
  static constexpr int64_t kColumns = 256;
};
NormWeightRows norm_weight_rows(const Call&);
const char* check_norm_backward_weight(const Call&, int64_t axis);
// On a CPU: phase 0 computes the statistics of rows, phase 1 the segments of columns, phase 2 joins
// these.
int64_t norm_weight_units(const Call&, int phase);
size_t norm_weight_scratch(const Call&);
size_t norm_weight_shared(const Call&);

// The reduction that adds, which is the gradient of a bias, and whether a call of it is over the
// first `count` axes, at least one. Its room defines both.
extern const std::string_view kSumOperation;
bool sums_leading_axes(const Call&, int count);

}  // namespace invar::ops
