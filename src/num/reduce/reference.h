// Row reductions, the scalar truth (spec/reduction.md). Results are not yet stored: the caller
// applies the store rule to what it stores.
#pragma once

#include <cmath>
#include <cstdint>

#include "num/reduce/schedule.h"

namespace invar::num::reference {

// reduction.1 - 5 with any accumulation and joining: lane = accumulate(lane, i) for the elements i
// of the row in ascending order, lanes and segments joined by join, everything starting at `start`.
template <class T, class Accumulate, class Join>
T reduce_row(int64_t n, T start, Accumulate accumulate, Join join) {
  T total = start;
  for (int64_t begin = 0; begin < n; begin += kRowSegment) {  // reduction.1
    T lane[kRowLanes];
    for (T& l : lane) l = start;
    int64_t end = n < begin + kRowSegment ? n : begin + kRowSegment;
    for (int64_t i = begin; i < end; ++i) {  // reduction.2; begin is a multiple of 256
      T& l = lane[i % kRowLanes];
      l = accumulate(l, i);
    }
    for (int stride = kRowLanes / 2; stride >= 1; stride /= 2)  // reduction.4
      for (int j = 0; j < stride; ++j) lane[j] = join(lane[j], lane[j + stride]);
    total = join(total, lane[0]);  // reduction.5
  }
  return total;
}

// The sum of at(i) over i < n, and the product (reduction.10).
template <class At>
float row_sum_of(int64_t n, At at) {
  return reduce_row(
      n, 0.0f, [&](float lane, int64_t i) { return lane + at(i); }, [](float a, float b) { return a + b; });
}
template <class At>
float row_product_of(int64_t n, At at) {
  return reduce_row(
      n, 1.0f, [&](float lane, int64_t i) { return lane * at(i); }, [](float a, float b) { return a * b; });
}

// reduction.15: the sum of the products a(i) b(i).
template <class A, class B>
float row_dot_of(int64_t n, A a, B b) {
  return reduce_row(
      n, 0.0f, [&](float lane, int64_t i) { return std::fma(a(i), b(i), lane); },
      [](float x, float y) { return x + y; });
}

// reduction.12: give(i, v) for every i < n in ascending order, where v is the inclusive scan up to
// at(i).
template <class T, class At, class Join, class Give>
void scan(int64_t n, T start, At at, Join join, Give give) {
  T carry = start;
  for (int64_t block = 0; block < n; block += kScanBlock) {
    T offset = start;
    for (int64_t run = block; run < n && run < block + kScanBlock; run += kScanRun) {
      T prefix = start;
      for (int64_t i = run; i < n && i < run + kScanRun; ++i) {
        prefix = join(prefix, at(i));
        give(i, join(carry, join(offset, prefix)));
      }
      offset = join(offset, prefix);
    }
    carry = join(carry, offset);
  }
}

// x: n contiguous elements.
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
