#include "num/reduce/reference.h"

#include <algorithm>
#include <cmath>

#include "num/reduce/schedule.h"

namespace invar::num::reference {
namespace {

// reduction.4: lane j += lane j + stride, for strides lanes/2 ... 1.
float join(float* lane, int lanes) {
  for (int stride = lanes / 2; stride >= 1; stride /= 2)
    for (int j = 0; j < stride; ++j) lane[j] = lane[j] + lane[j + stride];
  return lane[0];
}

template <class Accumulate>
float row(int64_t n, Accumulate accumulate) {
  float total = 0;
  for (int64_t begin = 0; begin < n; begin += kRowSegment) {  // reduction.1
    float lane[kRowLanes] = {};
    int64_t end = std::min(n, begin + kRowSegment);
    for (int64_t i = begin; i < end; ++i) {  // reduction.2; begin is a multiple of 256
      float& l = lane[i % kRowLanes];
      l = accumulate(l, i);
    }
    total = total + join(lane, kRowLanes);  // reduction.5
  }
  return total;
}

}  // namespace

float row_sum(const float* x, int64_t n) {
  return row(n, [x](float lane, int64_t i) { return lane + x[i]; });
}

float row_sum_squares(const float* x, int64_t n) {
  return row(n, [x](float lane, int64_t i) { return std::fma(x[i], x[i], lane); });  // reduction.3
}

float row_sum_squares(const float* x, float center, int64_t n) {
  return row(n, [=](float lane, int64_t i) {
    float d = x[i] - center;
    return std::fma(d, d, lane);  // reduction.3
  });
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
  return join(lane, kBlockLanes);
}

}  // namespace invar::num::reference
