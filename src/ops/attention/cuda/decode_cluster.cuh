// Few rows of a key head that see few blocks: a cluster of thread blocks has them, one of its thread blocks each key block
// (whole.cuh). In the end the cluster folds what its thread blocks made. From compute capability 9.0 on.
#pragma once
#include <cooperative_groups.h>

#include "ops/attention/cuda/smem_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kNearBlocks = 8;  // of a cluster, wherever there are any

// Rows `count` of R of a cluster's run: their parts of all blocks, which lie in the thread blocks' shared memories
// (attention.9, attention.17, attention.10). A warp has 32 columns of a row; lane b what is to be known of block b.
template <int R, class Cluster>
__device__ void fold_near(const Step& s, const Cluster& cluster, float* memory, const Room<R, true>& at,
                          const PlacedRow (&rows)[R], int count, int blocks) {
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, chunks = static_cast<int>(ceil_div(g.dv, kWarp));
  const int warps = static_cast<int>(cluster.num_blocks()) * kWholeWarps;
  for (int unit = static_cast<int>(cluster.block_rank()) * kWholeWarps + threadIdx.x / kWarp;
       unit < count * chunks; unit += warps) {
    const int r = unit / chunks, column = unit % chunks * kWarp + lane;
    float mb = -kInf, lb = 0;
    if (lane < blocks) {
      const float* mark = cluster.map_shared_rank(memory + at.marks, lane) + 2 * r;
      mb = mark[0], lb = mark[1];
    }
    float part[kNearBlocks];
#pragma unroll
    for (int b = 0; b < kNearBlocks; ++b)
      part[b] = b < blocks && column < g.dv
                    ? cluster.map_shared_rank(memory + at.parts, b)[r * g.dv_padded + column]
                    : 0.0f;
    float upto = mb;
#pragma unroll
    for (int step = 1; step < kNearBlocks; step *= 2) {
      const float before = __shfl_up_sync(kAllLanes, upto, step);
      if (lane >= step) upto = most(upto, before);
    }
    const float before = __shfl_up_sync(kAllLanes, upto, 1);
    const float by = factor(set1(mb), set1(lane ? before : -kInf));
    Folded all;
    all.m = set1(__shfl_sync(kAllLanes, upto, kNearBlocks - 1));
    F o = zero();
#pragma unroll
    for (int b = 0; b < kNearBlocks; ++b) {
      const float f = __shfl_sync(kAllLanes, by, b), l = __shfl_sync(kAllLanes, lb, b);
      if (b < blocks) all.l = fold(f, all.l, set1(l)), o = fold(f, o, set1(part[b]));
    }
    if (s.sinks) o = fold(all.join(set1(s.sinks[rows[r].row.head]), set1(1.0f)), o, zero());
    if (column < g.dv) store(s.y + rows[r].place * g.dv + column, result(o, all.m, all.l));
  }
}

// Clusters: runs of R rows of key heads.
template <int R>
__global__ void __launch_bounds__(kWholeThreads) near_kernel(const __grid_constant__ Step s) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ float4 room[];
  __shared__ PlacedRow rows[R];
  float* const memory = reinterpret_cast<float*>(room);
  const auto cluster = cooperative_groups::this_cluster();
  const Geometry& g = s.g;
  const Room<R, true> at(g);
  const WholeBlock<R, true> own(s, blockIdx.x / cluster.num_blocks(), cluster.block_rank());
  release_next();
  own.ask_keys(s, memory), own.ask_values(s, memory);
  own.place_rows(s, rows);
  __syncthreads();
  await_previous();
  own.run(s, memory, rows, memory + at.parts, memory + at.marks, g.dv_padded, 2, R);
  cluster.sync();
  fold_near<R>(s, cluster, memory, at, rows, own.count,
               static_cast<int>(ceil_div(own.found.past + g.keys, kBlock)));
  cluster.sync();  // nobody ends while others read its memory
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
