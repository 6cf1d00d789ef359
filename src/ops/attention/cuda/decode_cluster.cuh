// Decoding with few key blocks: a thread block cluster takes a group of query rows, and each of its
// thread blocks one key block (smem_block.cuh). In the end the cluster combines the partial results
// through distributed shared memory. From compute capability 9.0 on.
#pragma once
#include <cooperative_groups.h>

#include "ops/attention/cuda/smem_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kMaxClusterBlocks = 8;  // the portable maximum

// Combines the partial results of the `count` first rows of a cluster, which are in the shared
// memories of its thread blocks (attention.9, attention.17, attention.10). A warp takes 32 columns
// of a row; lane b holds the maximum and the sum of block b.
template <int R, class Cluster>
__device__ void combine_cluster(const AttentionParams& s, const Cluster& cluster, float* memory,
                                const SmemLayout<R, true>& at, const IndexedRow (&rows)[R], int count,
                                int blocks) {
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, chunks = static_cast<int>(ceil_div(g.dv, kWarp));
  const int warps = static_cast<int>(cluster.num_blocks()) * kSmemWarps;
  for (int unit = static_cast<int>(cluster.block_rank()) * kSmemWarps + threadIdx.x / kWarp;
       unit < count * chunks; unit += warps) {
    const int r = unit / chunks, column = unit % chunks * kWarp + lane;
    float mb = -kInf, lb = 0;
    if (lane < blocks) {
      const float* max_sum = cluster.map_shared_rank(memory + at.max_sums, lane) + 2 * r;
      mb = max_sum[0], lb = max_sum[1];
    }
    float part[kMaxClusterBlocks];
#pragma unroll
    for (int b = 0; b < kMaxClusterBlocks; ++b)
      part[b] = b < blocks && column < g.dv
                    ? cluster.map_shared_rank(memory + at.partials, b)[r * g.dv_padded + column]
                    : 0.0f;
    float upto = mb;
#pragma unroll
    for (int step = 1; step < kMaxClusterBlocks; step *= 2) {
      const float before = __shfl_up_sync(kFullWarp, upto, step);
      if (lane >= step) upto = max_nan(upto, before);
    }
    const float before = __shfl_up_sync(kFullWarp, upto, 1);
    const float by = rescale_factor(set1(mb), set1(lane ? before : -kInf));
    OnlineSoftmax all;
    all.m = set1(__shfl_sync(kFullWarp, upto, kMaxClusterBlocks - 1));
    F o = zero();
#pragma unroll
    for (int b = 0; b < kMaxClusterBlocks; ++b) {
      const float f = __shfl_sync(kFullWarp, by, b), l = __shfl_sync(kFullWarp, lb, b);
      if (b < blocks) all.l = fold(f, all.l, set1(l)), o = fold(f, o, set1(part[b]));
    }
    if (s.sinks) o = fold(all.join(set1(s.sinks[rows[r].row.head]), set1(1.0f)), o, zero());
    if (column < g.dv) store(s.y + rows[r].index * g.dv + column, normalized(o, all.m, all.l));
  }
}

// Clusters: groups of R rows of key heads.
template <int R>
__global__ void __launch_bounds__(kSmemThreads)
    decode_cluster_kernel(const __grid_constant__ AttentionParams s) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ float4 smem[];
  __shared__ IndexedRow rows[R];
  float* const memory = reinterpret_cast<float*>(smem);
  const auto cluster = cooperative_groups::this_cluster();
  const Geometry& g = s.g;
  const SmemLayout<R, true> at(g);
  const SmemKvBlock<R, true> own(s, blockIdx.x / cluster.num_blocks(), cluster.block_rank());
  trigger_next_grid();
  own.load_keys_async(s, memory), own.load_values_async(s, memory);
  own.index_rows(s, rows);
  __syncthreads();
  wait_for_previous_grid();
  own.run(s, memory, rows, memory + at.partials, memory + at.max_sums, g.dv_padded, 2, R);
  cluster.sync();
  combine_cluster<R>(s, cluster, memory, at, rows, own.count,
                     static_cast<int>(ceil_div(own.cache.past + g.keys, kBlock)));
  cluster.sync();  // no thread block ends while others read its memory
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
