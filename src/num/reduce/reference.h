// Row reductions, the scalar truth (spec/reduction.md). x: n contiguous elements. Results are not yet stored:
// the caller applies the store rule to what it stores.
#pragma once

#include <cstdint>

namespace invar::num::reference {

float row_sum(const float* x, int64_t n);
float row_sum_squares(const float* x, int64_t n);
// The sum of squares of x[i] - center.
float row_sum_squares(const float* x, float center, int64_t n);
// reduction.9, n >= 1.
struct Moments {
  float mean, variance;
};
Moments row_moments(const float* x, int64_t n);
// The sum of n <= 128 terms, the missing ones being +0 (reduction.6).
float block_sum(const float* x, int n);

}  // namespace invar::num::reference
