// Row reductions over lanes (spec/reduction.md): the one implementation that every kernel uses.
#pragma once

#include "num/lane/lane.h"
#include "num/reduce/schedule.h"

namespace invar::num::INVAR_ISA_NS {

static_assert(kBlockLanes % kW == 0 && kRowLanes % kW == 0);

// reduction.4: kLanes lanes held in kLanes / kW vectors, joined by halving strides. Overwrites them.
template <int kLanes>
INVAR_INLINE float join_lanes(F* lane) {
  for (int stride = kLanes / 2; stride >= kW; stride /= 2)
    for (int v = 0; v < stride / kW; ++v) lane[v] = add(lane[v], lane[v + stride / kW]);
  return join_add(lane[0]);
}

// The sum of one segment: n <= 4096 elements. step(acc, i, count) accumulates the elements i ... i + count -
// 1 of the segment (count <= kW; fewer only at the row's end, where the missing lanes must add +0) to the
// lanes of acc.
template <class Step>
INVAR_INLINE float reduce_segment(int64_t n, Step step) {
  constexpr int kVectors = kRowLanes / kW;
  constexpr int kGroup =
      kVectors < 8 ? kVectors : 8;  // accumulators in flight: hides the latency of the adder
  F lane[kVectors];
  for (int g = 0; g < kVectors; g += kGroup) {
    F acc[kGroup];
    for (int v = 0; v < kGroup; ++v) acc[v] = zero();
    int64_t i = g * kW;
    for (; i + kGroup * kW <= n; i += kRowLanes)
      for (int v = 0; v < kGroup; ++v) acc[v] = step(acc[v], i + v * kW, kW);
    for (int v = 0; v < kGroup && i + v * kW < n; ++v) {  // the row's end falls into this group
      int64_t left = n - (i + v * kW);
      acc[v] = step(acc[v], i + v * kW, left < kW ? static_cast<int>(left) : kW);
    }
    for (int v = 0; v < kGroup; ++v) lane[g + v] = acc[v];
  }
  return join_lanes<kRowLanes>(lane);
}

// A whole row of n elements; step as above with i counted from the start of the row. For values a kernel
// computes as it goes; step must return what row_sum of the stored values would.
template <class Step>
INVAR_INLINE float reduce_row(int64_t n, Step step) {
  float total = 0;
  for (int64_t begin = 0; begin < n; begin += kRowSegment) {  // reduction.1, reduction.5
    int64_t length = n - begin < kRowSegment ? n - begin : kRowSegment;
    total = total + reduce_segment(
                        length, [&](F acc, int64_t i, int count)
                                    __attribute__((always_inline)) { return step(acc, begin + i, count); });
  }
  return total;
}

INVAR_INLINE float row_sum(const float* x, int64_t n) {
  return reduce_row(
      n, [=](F acc, int64_t i, int count) __attribute__((always_inline)) {
        return add(acc, count == kW ? load(x + i) : load_n(x + i, count));
      });
}

INVAR_INLINE float row_sum_squares(const float* x, int64_t n) {
  return reduce_row(
      n, [=](F acc, int64_t i, int count) __attribute__((always_inline)) {
        F v = count == kW ? load(x + i) : load_n(x + i, count);
        return fma(v, v, acc);  // reduction.3
      });
}

// The same of x[i] - center.
INVAR_INLINE float row_sum_squares(const float* x, float center, int64_t n) {
  F whole = set1(center);
  alignas(64) float centers[kW];
  store(centers, whole);
  return reduce_row(
      n, [ =, &centers ](F acc, int64_t i, int count) __attribute__((always_inline)) {
        // Past the row's end +0 - +0 is subtracted, not the center.
        F v = count == kW ? sub(load(x + i), whole) : sub(load_n(x + i, count), load_n(centers, count));
        return fma(v, v, acc);  // reduction.3
      });
}

// reduction.9, n >= 1.
struct Moments {
  float mean, variance;
};
INVAR_INLINE Moments row_moments(const float* x, int64_t n) {
  float count = static_cast<float>(n), mean = row_sum(x, n) / count;
  return {mean, row_sum_squares(x, mean, n) / count};
}

// reduction.6: the sum of n <= 128 terms, the missing ones being +0.
INVAR_INLINE float block_sum(const float* x, int n) {
  F lane[kBlockLanes / kW];
  for (int v = 0; v < kBlockLanes / kW; ++v) {
    int left = n - v * kW;
    lane[v] = add(zero(), left >= kW ? load(x + v * kW) : left > 0 ? load_n(x + v * kW, left) : zero());
  }
  return join_lanes<kBlockLanes>(lane);
}

}  // namespace invar::num::INVAR_ISA_NS
