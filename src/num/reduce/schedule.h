// The constants of row reductions (spec/reduction.md), shared by the reference, the lane kernels
// and CUDA.
#pragma once

#include <cstdint>

namespace invar::num {

constexpr int64_t kRowSegment = 4096;  // reduction.1: elements per segment
constexpr int kRowLanes = 256;  // reduction.2: accumulators per segment; element i belongs to lane i mod 256
constexpr int kScanRun = 16, kScanRuns = 16;  // reduction.12: elements per run, runs per block
constexpr int64_t kScanBlock = kScanRun * kScanRuns;
constexpr int kBlockLanes = 128;  // reduction.6: terms of a block sum (one KV block of attention)

}  // namespace invar::num
