// How the blocks of a cluster that share a row exchange values of a reduction, compiled by nvcc
// only; from compute capability 9.0 on.
#pragma once
#include <cooperative_groups.h>

#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

constexpr int kMaxClusterBlocks = 8, kClusterSlots = kMaxClusterBlocks * 32;
constexpr int kClusterFloats = 2 * kClusterSlots;  // of shared memory

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ int cluster_rank() {
  return static_cast<int>(cooperative_groups::this_cluster().block_rank());
}
__device__ __forceinline__ int cluster_size() {
  return static_cast<int>(cooperative_groups::this_cluster().num_blocks());
}
// Two exchanges have places of their own, so one barrier each is enough: a block that writes the
// values of the next but one has waited until all have read these.
struct ClusterExchange {
  float* slots;
  int next;
  bool others_run;
  __device__ __forceinline__ void begin(float* room) {
    slots = room, next = 0, others_run = false;
    cooperative_groups::this_cluster().barrier_arrive();
  }
  // The values of all slots; the warps with `sends` give that of slot `at`. All threads call this.
  __device__ __forceinline__ const float* all(F v, bool sends, int at) {
    const auto cluster = cooperative_groups::this_cluster();
    if (!others_run) cluster.barrier_wait(), others_run = true;
    float* to = slots + next * kClusterSlots;
    next ^= 1;
    const int block = threadIdx.x % 32;  // each lane writes to one
    if (sends && block < cluster_size()) *cluster.map_shared_rank(to + at, block) = v.v;
    cluster.sync();
    return to;
  }
};
#else
__device__ __forceinline__ int cluster_rank() {
  return 0;
}
__device__ __forceinline__ int cluster_size() {
  return 1;
}
struct ClusterExchange {
  __device__ __forceinline__ void begin(float*) {}
  __device__ __forceinline__ const float* all(F, bool, int) { return nullptr; }
};
#endif

}  // namespace invar::num::INVAR_ISA_NS
