// Scans on a GPU (spec/reduction.md reduction.12), compiled by nvcc only. A thread has a run; runs
// and blocks read the scan of their predecessors from shared memory.
#pragma once

#include "num/reduce/block.h"

namespace invar::num::INVAR_ISA_NS {

// A tile: kBlocks blocks of kColumns rows, a thread for each run of them.
template <class T, int kColumns, int kBlocks>
struct ScanTile {
  static constexpr int kRuns = kBlocks * kScanRuns, kThreads = kRuns * kColumns;
  T run[kRuns][kColumns], block[kBlocks][kColumns];
};

// v: the elements of run r of row c, those beyond the row's end being the start of Join -> their
// inclusive scans. carry: the scan of the tiles before -> that of this one, too; the same in all
// threads of a row.
template <class Join, class T, int kColumns, int kBlocks>
INVAR_DEVICE void scan_tile(ScanTile<T, kColumns, kBlocks>& tile, int r, int c, T (&v)[kScanRun], T& carry) {
  T prefix = Join::kStart;
#pragma unroll
  for (T& e : v) e = prefix = Join::join(prefix, e);
  __syncthreads();  // the last tile's runs have been read
  tile.run[r][c] = prefix;
  __syncthreads();
  T offset = Join::kStart;
  for (int q = r / kScanRuns * kScanRuns; q < r; ++q) offset = Join::join(offset, tile.run[q][c]);
  if (r % kScanRuns == kScanRuns - 1) tile.block[r / kScanRuns][c] = Join::join(offset, prefix);
  __syncthreads();
  T before = carry;
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    if (b == r / kScanRuns) before = carry;
    carry = Join::join(carry, tile.block[b][c]);
  }
#pragma unroll
  for (T& e : v) e = Join::join(before, Join::join(offset, e));
}

}  // namespace invar::num::INVAR_ISA_NS
