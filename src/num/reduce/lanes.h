// Row reductions over lanes (spec/reduction.md): the one implementation that every kernel uses.
#pragma once

#include "num/lane/lane.h"
#include "num/reduce/extreme.h"
#include "num/reduce/schedule.h"

namespace invar::num::INVAR_ISA_NS {

static_assert(kBlockLanes % kW == 0 && kRowLanes % kW == 0);

// An operation that joins lanes and segments, and the identity that every lane and total starts
// with (reduction.2, reduction.10).
struct SumOp {
  static constexpr bool kExtreme = false;
  static constexpr float kStart = 0.0f;
  INVAR_INLINE F join(F a, F b) { return add(a, b); }
  INVAR_INLINE float join(float a, float b) { return a + b; }
  INVAR_INLINE float lanes(F a) { return join_add(a); }
};
// reduction.4 within one vector.
template <class Join>
INVAR_INLINE float join_within(F a) {
  alignas(64) float lane[kW];
  store(lane, a);
  for (int stride = kW / 2; stride >= 1; stride /= 2)
    for (int j = 0; j < stride; ++j) lane[j] = Join::join(lane[j], lane[j + stride]);
  return lane[0];
}
struct ProductOp {
  static constexpr bool kExtreme = false;
  static constexpr float kStart = 1.0f;
  INVAR_INLINE F join(F a, F b) { return mul(a, b); }
  INVAR_INLINE float join(float a, float b) { return a * b; }
  INVAR_INLINE float lanes(F a) { return join_within<ProductOp>(a); }
};

// n <= kW elements at p, padded with the identity.
template <class Join>
INVAR_INLINE F load_or_start(const float* p, int n) {
  if (n == kW) return load(p);
  if constexpr (Join::kStart == 0.0f) return load_n(p, n);
  alignas(64) float lane[kW];
  for (int j = 0; j < kW; ++j) lane[j] = j < n ? p[j] : Join::kStart;
  return load(lane);
}

// The first n lanes, the others +0.
INVAR_INLINE F first_lanes(F x, int n) {
  alignas(64) float lane[kW];
  store(lane, x);
  return load_n(lane, n);
}

// reduction.4: kLanes lanes held in kLanes / kW vectors, joined by halving strides. Overwrites
// them.
template <int kLanes, class Join = SumOp>
INVAR_INLINE float join_lanes(F* lane) {
  for (int stride = kLanes / 2; stride >= kW; stride /= 2)
    for (int v = 0; v < stride / kW; ++v) lane[v] = Join::join(lane[v], lane[v + stride / kW]);
  return Join::lanes(lane[0]);
}

// One segment: n <= 4096 elements. step(acc, i, count) accumulates elements i ... i + count - 1 of
// the segment (count <= kW; fewer only at the row's end, where the missing lanes must add the
// identity of Join) to the lanes of acc.
//
// ahead: the address of the elements after this segment, or null. Several passes over a segment do
// not read memory in order, which defeats the hardware prefetcher (4.1 instead of 5.4 GB/s; 5.6 for
// one pass in order); so the next elements are prefetched here in order. An address beyond the
// tensor is harmless.
template <class Join = SumOp, class Step>
INVAR_INLINE float reduce_segment(int64_t n, Step step, const float* ahead = nullptr) {
  constexpr int kVectors = kRowLanes / kW;
  // Accumulators in flight hide the latency of the adder; with 32 registers all of them, in one
  // pass.
  constexpr int kGroup = kW == 16 ? kVectors : 8;
  F lane[kVectors];
  // Lanes without elements hold the start, which changes nothing (reduction.7): a short row has a
  // small tree.
  const int lanes = n > kRowLanes / 2 ? kRowLanes : n > kRowLanes / 4 ? kRowLanes / 2 : kRowLanes / 4;
  for (int g = 0; g * kW < lanes; g += kGroup) {
    F acc[kGroup];
    for (int v = 0; v < kGroup; ++v) acc[v] = set1(Join::kStart);
    int64_t i = g * kW;
    for (; i + kGroup * kW <= n; i += kRowLanes) {
      if (ahead && kGroup < kVectors) {
        for (int line = 0; line < kGroup * kW; line += 16) INVAR_PREFETCH(ahead + line);
        ahead += kGroup * kW;
      }
      for (int v = 0; v < kGroup; ++v) acc[v] = step(acc[v], i + v * kW, kW);
    }
    for (int v = 0; v < kGroup && i + v * kW < n; ++v) {  // the row's end falls into this group
      int64_t left = n - (i + v * kW);
      acc[v] = step(acc[v], i + v * kW, left < kW ? static_cast<int>(left) : kW);
    }
    for (int v = 0; v < kGroup; ++v) lane[g + v] = acc[v];
  }
  return lanes == kRowLanes       ? join_lanes<kRowLanes, Join>(lane)
         : lanes == kRowLanes / 2 ? join_lanes<kRowLanes / 2, Join>(lane)
                                  : join_lanes<kRowLanes / 4, Join>(lane);
}

// A whole row of n elements; step as above with i counted from the start of the row. For values a
// kernel computes as it goes; step must return what row_sum of the stored values would.
template <class Join = SumOp, class Step>
INVAR_INLINE float reduce_row(int64_t n, Step step) {
  float total = Join::kStart;
  for (int64_t begin = 0; begin < n; begin += kRowSegment) {  // reduction.1, reduction.5
    int64_t length = n - begin < kRowSegment ? n - begin : kRowSegment;
    float segment = reduce_segment<Join>(
        length, [&](F acc, int64_t i, int count)
                    __attribute__((always_inline)) { return step(acc, begin + i, count); });
    total = Join::join(total, segment);
  }
  return total;
}

INVAR_INLINE float row_sum(const float* x, int64_t n) {
  return reduce_row(
      n, [=](F acc, int64_t i, int count)
             __attribute__((always_inline)) { return add(acc, load_part(x + i, count)); });
}

INVAR_INLINE float row_sum_squares(const float* x, int64_t n) {
  return reduce_row(
      n, [=](F acc, int64_t i, int count) __attribute__((always_inline)) {
        F v = load_part(x + i, count);
        return fma(v, v, acc);  // reduction.3
      });
}

// The same of x[i] - center.
INVAR_INLINE float row_sum_squares(const float* x, float center, int64_t n) {
  F whole = set1(center);
  return reduce_row(
      n, [=](F acc, int64_t i, int count) __attribute__((always_inline)) {
        // Past the row's end +0 - +0 is subtracted, not the center.
        F v = sub(load_part(x + i, count), count == kW ? whole : first_lanes(whole, count));
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
