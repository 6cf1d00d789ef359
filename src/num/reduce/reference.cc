// Reference row reductions: sums, squares, moments, block sums.
#include "num/reduce/reference.h"

#include <cmath>

namespace invar::num::reference {

float row_sum(const float* x, int64_t n) {
  return row_sum_of(n, [x](int64_t i) { return x[i]; });
}

float row_sum_squares(const float* x, int64_t n) {
  return reduce_row(
      n, 0.0f, [x](float lane, int64_t i) { return std::fma(x[i], x[i], lane); },  // reduction.3
      [](float a, float b) { return a + b; });
}

float row_sum_squares(const float* x, float center, int64_t n) {
  return reduce_row(
      n, 0.0f,
      [=](float lane, int64_t i) {
        float d = x[i] - center;
        return std::fma(d, d, lane);  // reduction.3
      },
      [](float a, float b) { return a + b; });
}

Moments row_moments(const float* x, int64_t n) {
  float count = static_cast<float>(n);
  float mean = row_sum(x, n) / count;
  float squares = row_sum_squares(x, mean, n);
  return {mean, squares / count};
}

float block_sum(const float* x, int n) {
  float lane[kBlockLanes] = {};
  for (int j = 0; j < n; ++j) lane[j] = 0.0f + x[j];
  for (int stride = kBlockLanes / 2; stride >= 1; stride /= 2)
    for (int j = 0; j < stride; ++j) lane[j] = lane[j] + lane[j + stride];
  return lane[0];
}

}  // namespace invar::num::reference
