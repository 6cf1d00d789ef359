// Rows of binary64 (spec/reduction.md reduction.14): the schedule of binary32 one number at a time.
#pragma once
#include "num/binary64.h"
#include "num/reduce/schedule.h"

namespace invar::num::INVAR_ISA_NS {

// An operation that joins elements: the identity (kStart), and join.
struct Sum64 {
  static constexpr double kStart = 0;
  INVAR_INLINE double join(double a, double b) { return a + b; }
};
struct Product64 {
  static constexpr double kStart = 1;
  INVAR_INLINE double join(double a, double b) { return a * b; }
};
struct Largest64 {
  static constexpr double kStart = -__builtin_inf();
  INVAR_INLINE double join(double a, double b) { return maximum64(a, b); }
};
struct Smallest64 {
  static constexpr double kStart = __builtin_inf();
  INVAR_INLINE double join(double a, double b) { return minimum64(a, b); }
};

// reduction.2 - 4: the elements [begin, end) of a row, a segment of it. step(lane, i): element i
// joins.
template <class Join, class Step>
INVAR_INLINE double segment64(int64_t begin, int64_t end, Step step) {
  double lane[kRowLanes];
  for (double& l : lane) l = Join::kStart;
  for (int64_t i = begin; i < end; i += kRowLanes) {
    const int n = end - i < kRowLanes ? static_cast<int>(end - i) : kRowLanes;
    for (int j = 0; j < n; ++j) lane[j] = step(lane[j], i + j);
  }
  for (int stride = kRowLanes / 2; stride >= 1; stride /= 2)
    for (int j = 0; j < stride; ++j) lane[j] = Join::join(lane[j], lane[j + stride]);
  return lane[0];
}

// reduction.12: give(i, v) for i < n with the inclusive scan v up to at(i).
template <class Join, class At, class Give>
INVAR_INLINE void scan64(int64_t n, At at, Give give) {
  double carry = Join::kStart, offset = Join::kStart, prefix = Join::kStart;
  for (int64_t i = 0; i < n; ++i) {
    if (i % kScanRun == 0) {
      if (i) offset = Join::join(offset, prefix);
      prefix = Join::kStart;
      if (i % kScanBlock == 0) {
        if (i) carry = Join::join(carry, offset);
        offset = Join::kStart;
      }
    }
    prefix = Join::join(prefix, at(i));
    give(i, Join::join(carry, Join::join(offset, prefix)));
  }
}

}  // namespace invar::num::INVAR_ISA_NS
