// binary64 contraction (spec/contraction.md contraction.7): the schedule of fp32-1, one row by a
// few columns at a time.
#pragma once
#include "num/binary64.h"
#include "num/contract/schedule.h"

namespace invar::num::INVAR_ISA_NS {

// y[c] = the sum over i < k of a(i) b(i, c), for c < n <= kColumns; stored.
template <int kColumns, class A, class B>
INVAR_INLINE void contract64(int64_t k, int n, A a, B b, double* y) {
  double segment[kSegments][kColumns] = {};
  for (int s = 0; s < kSegments; ++s) {
    const Range blocks = segment_blocks(s, k);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      double chain[kColumns] = {};
      const Range r = block_range(block, k);
      for (int64_t i = r.begin; i < r.end; ++i) {
        const double left = a(i);
        if (n == kColumns)
          for (int c = 0; c < kColumns; ++c) chain[c] = __builtin_fma(left, b(i, c), chain[c]);
        else
          for (int c = 0; c < n; ++c) chain[c] = __builtin_fma(left, b(i, c), chain[c]);
      }
      for (int c = 0; c < kColumns; ++c) segment[s][c] = segment[s][c] + chain[c];
    }
  }
  for (int c = 0; c < n; ++c) {
    double sum[kSegments];
    for (int s = 0; s < kSegments; ++s) sum[s] = segment[s][c];
    y[c] = canonicalize64(join_segments(sum));
  }
}

}  // namespace invar::num::INVAR_ISA_NS
