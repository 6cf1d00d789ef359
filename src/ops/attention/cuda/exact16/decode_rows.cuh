// What the kernels of attention_exact16 for few rows share.
#pragma once
#include "ops/attention/cuda/exact16/row_per_warp.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kDecodeWarps = 4, kDecodeThreads = kDecodeWarps * kWarp, kDecodeColumns = 128, kDecodeSteps = 4;
constexpr int kDecodeBlocks = 3;  // of a multiprocessor, where the keys have so few elements

// Where partial results of rows go: m_b and l_b, and O_b.
struct PartialRows {
  float *max_sums, *results;
  int64_t max_sums_step, results_step;  // floats from row to row
};
// Row-block `to` and those of the rows behind it, among the partials of a call.
__device__ inline PartialRows partial_rows(const AttentionParams& s, int64_t to) {
  return {s.max_sums + 2 * to, s.partials + to * s.g.dv_padded, 2 * s.g.seen, s.g.seen * s.g.dv_padded};
}

// A key block row by row, where its numbers are not ordinary.
__device__ __noinline__ void exact_decode_rows(const AttentionParams& s, const ExactLayout& at, int64_t head,
                                               int64_t first, int count, int64_t block,
                                               const PartialRows& to) {
  const ExactCacheBlock own = exact_cache_block(s, at, head, block);
  for (int r = threadIdx.x / kWarp; r < count; r += blockDim.x / kWarp) {
    ExactRow row(s, head, first + r);
    float mb;
    F lb;
    row.weigh(at, own, block, mb, lb);
    if (threadIdx.x % kWarp == 0)
      to.max_sums[r * to.max_sums_step] = mb, to.max_sums[r * to.max_sums_step + 1] = lb.v;
    if (mb == -kInf) continue;
    float* const results = to.results + r * to.results_step;
    row.multiply(at, own, [&](int64_t c, F ob) { store(results + c, ob); });
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
