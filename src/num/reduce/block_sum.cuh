// reduction.6 by the threads of a warp: a block sum whose lanes a group of threads holds in
// registers.
#pragma once
#include "num/lane/lane.h"
#include "num/reduce/schedule.h"

namespace invar::num::INVAR_ISA_NS {

// Lane j of the block is value[j / kThreads] of thread j % kThreads, of kThreads neighbours in a
// warp. The first strides add within a thread, the last ones across threads. All threads get the
// sum.
template <int kThreads>
__device__ inline float block_sum(const float (&value)[kBlockLanes / kThreads]) {
  constexpr int kOwn = kBlockLanes / kThreads;
  float lane[kOwn];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) lane[i] = 0.0f + value[i];
#pragma unroll
  for (int stride = kOwn / 2; stride >= 1; stride /= 2)
#pragma unroll
    for (int i = 0; i < stride; ++i) lane[i] = lane[i] + lane[i + stride];
#pragma unroll
  for (int stride = kThreads / 2; stride >= 1; stride /= 2)
    lane[0] = lane[0] + __shfl_xor_sync(0xffffffffu, lane[0], stride);
  return lane[0];
}

// The same over a warp whose first half has the lanes below 64 and whose second half has the
// others: thread t of 16 has lanes 16 i + t of its half, i < 4.
__device__ inline float block_sum_runs(const float (&value)[4]) {
  float lane[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    lane[i] = 0.0f + value[i], lane[i] = lane[i] + __shfl_xor_sync(0xffffffffu, lane[i], 16);
  lane[0] = (lane[0] + lane[2]) + (lane[1] + lane[3]);
#pragma unroll
  for (int stride = 8; stride >= 1; stride /= 2)
    lane[0] = lane[0] + __shfl_xor_sync(0xffffffffu, lane[0], stride);
  return lane[0];
}

}  // namespace invar::num::INVAR_ISA_NS
