// Scans (spec/reduction.md reduction.12): the implementation that every kernel uses. Join: SumOp or
// ProductOp.
#pragma once

#include "num/reduce/columns.h"

namespace invar::num::INVAR_ISA_NS {

static_assert(kScanRun % kW == 0);

// One block: value[i] = the inclusive scan up to element x[i] of the block, i < 256, where elements
// beyond the row's end are the start of Join; `carry` is the scan of the blocks before and becomes
// that of this one too. The runs go side by side, so that none waits for its own last addition.
template <class Join>
INVAR_INLINE void scan_block(const float* x, float* value, float& carry) {
  constexpr int kSide = 8;  // runs at a time: the adder's latency times two a cycle
  alignas(64) float prefix[kScanBlock];
  for (int r = 0; r < kScanRuns; r += kSide) {
    float acc[kSide];
    for (int s = 0; s < kSide; ++s) acc[s] = Join::kStart;
    for (int k = 0; k < kScanRun; ++k)
      for (int s = 0; s < kSide; ++s) {
        acc[s] = Join::join(acc[s], x[(r + s) * kScanRun + k]);
        prefix[(r + s) * kScanRun + k] = acc[s];
      }
  }
  float offset = Join::kStart;
  for (int r = 0; r < kScanRuns; ++r) {
    for (int k = 0; k < kScanRun; k += kW) {
      int i = r * kScanRun + k;
      store(value + i, Join::join(set1(carry), Join::join(set1(offset), load(prefix + i))));
    }
    offset = Join::join(offset, prefix[r * kScanRun + kScanRun - 1]);
  }
  carry = Join::join(carry, offset);
}

// The same down `width` columns, one row of memory at a time: at(i) is the i-th row, give(i, c,
// values, count) takes the inclusive scans of the columns c ... up to row i. work: kScanWork *
// width floats.
constexpr int64_t kScanWork = 3;
template <class Join, class At, class Give>
INVAR_INLINE void scan_columns(int64_t n, int64_t width, At at, Give give, float* work) {
  float *prefix = work, *offset = work + width, *carry = work + 2 * width;
  for (int64_t c = 0; c < 3 * width; ++c) work[c] = Join::kStart;
  for (int64_t i = 0; i < n; ++i) {
    if (i && i % kScanRun == 0) join_columns<Join>(offset, prefix, width);
    if (i && i % kScanBlock == 0) join_columns<Join>(carry, offset, width);
    bool new_run = i % kScanRun == 0, new_block = i % kScanBlock == 0;
    const float* x = at(i);
    for (int64_t c = 0; c < width; c += kW) {
      int count = width - c < kW ? static_cast<int>(width - c) : kW;
      F start = set1(Join::kStart);
      F p = Join::join(new_run ? start : load_part(prefix + c, count), load_part(x + c, count));
      F o = new_block ? start : load_part(offset + c, count);
      store_part(prefix + c, p, count);
      if (new_block) store_part(offset + c, start, count);
      give(i, c, Join::join(load_part(carry + c, count), Join::join(o, p)), count);
    }
  }
}

}  // namespace invar::num::INVAR_ISA_NS
