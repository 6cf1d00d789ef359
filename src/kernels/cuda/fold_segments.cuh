// Folding the sums of a row's segments (spec/reduction.md reduction.5) while other blocks make
// them. The fold of a long row is a chain of additions that nothing may reorder: 4 cycles a
// segment, half of what reading the segments takes.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/reduce/block.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::INVAR_ISA_NS::kNoSum, num::INVAR_ISA_NS::ReductionPass;

__global__ void __launch_bounds__(kForEachThreads) mark_sums_kernel(uint32_t* sums, int64_t n) {
  trigger_and_wait();
  const int64_t i = int64_t{blockIdx.x} * kForEachThreads + threadIdx.x;
  if (i < n) sums[i] = kNoSum;
}
// Marks the sums of all segments as not made.
void launch_mark_sums(const ReductionPass& pass, int64_t segments, Stream stream) {
  const int64_t n = segments * pass.rows;
  launch_dependent(mark_sums_kernel, dim3(grid_for(ceil_div(n, kForEachThreads))), dim3(kForEachThreads), 0,
                   stream, reinterpret_cast<uint32_t*>(pass.partial), n);
}

// The fold of row r by a block: its first warp adds a batch of sums, the others wait for the next.
template <class Join, int kThreads>
__device__ F fold_segments(const ReductionPass& pass, int64_t segments, int64_t r) {
  constexpr int kAtOnce = 4, kFetchers = kThreads - kWarp, kBatch = kAtOnce * kFetchers;
  __shared__ float4 sums[2][kBatch / 4];
  const int thread = static_cast<int>(threadIdx.x) - kWarp;
  auto fetch = [&](int64_t batch) {
    const int64_t first = batch * kBatch + thread;
    const auto* from = reinterpret_cast<const volatile uint32_t*>(pass.partial + first * pass.rows + r);
    uint32_t u[kAtOnce];
    for (bool waits = true; waits;) {
      waits = false;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        u[k] = first + k * kFetchers < segments ? from[k * kFetchers * pass.rows]
                                                : num::f32_bits(Join::kStart);  // neutral
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) waits |= u[k] == kNoSum;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      reinterpret_cast<uint32_t*>(sums[batch % 2])[k * kFetchers + thread] = u[k];
  };
  if (thread >= 0) fetch(0);
  F total = set1(Join::kStart);
  const int64_t batches = ceil_div(segments, kBatch);
  for (int64_t b = 0; b < batches; ++b) {
    __syncthreads();
    if (thread >= 0) {
      if (b + 1 < batches) fetch(b + 1);
      continue;
    }
    const float4* from = sums[b % 2];
#pragma unroll 8
    for (int i = 0; i < kBatch / 4; ++i) {
      const float4 v = from[i];
      total = Join::join(Join::join(Join::join(Join::join(total, {v.x}), {v.y}), {v.z}), {v.w});
    }
  }
  return total;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
