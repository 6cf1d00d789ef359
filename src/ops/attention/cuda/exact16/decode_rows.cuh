// What the kernels of attention_exact16 for few rows share.
#pragma once
#include "ops/attention/cuda/exact16/row_per_warp.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kDecodeWarps = 4, kDecodeThreads = kDecodeWarps * kWarp, kDecodeColumns = 128, kDecodeSteps = 4;

// A key block row by row, where its numbers are not ordinary. to: of the first row's block among
// the partials.
__device__ __noinline__ void exact_decode_rows(const AttentionParams& s, const ExactLayout& at, int64_t head,
                                               int64_t first, int count, int64_t block, int64_t to) {
  const ExactCacheBlock own = exact_cache_block(s, at, head, block);
  for (int r = threadIdx.x / kWarp; r < count; r += kDecodeWarps) {
    ExactRow row(s, head, first + r);
    float mb;
    F lb;
    row.weigh(at, own, block, mb, lb);
    if (threadIdx.x % kWarp == 0)
      s.max_sums[2 * (to + r * s.g.seen)] = mb, s.max_sums[2 * (to + r * s.g.seen) + 1] = lb.v;
    if (mb == -kInf) continue;
    float* partial = s.partials + (to + r * s.g.seen) * s.g.dv_padded;
    row.multiply(at, own, [&](int64_t c, F ob) { store(partial + c, ob); });
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
