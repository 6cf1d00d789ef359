// The gradients of attention on a GPU (attention.20 to attention.24): a kernel for tiles of rows,
// which gives what rows keep and dq, and one for tiles of keys, which gives dk and dv. Scores are
// computed again and never kept. A tile that is hidden is left out where contraction.5 allows, that
// is, unless it has infinities or NaN.
#pragma once
#include "kernels/forced_route.h"
#include "ops/attention/cuda/backward_keys.cuh"
#include "ops/attention/cuda/backward_rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

extern __shared__ __align__(16) unsigned char grad_shared_memory[];

// The tiles of a thread block: in its shared memory, or, for wide heads on devices with little of
// it, in the call's memory. There a block takes one unit after another.
template <int kSlices, bool kInShared>
__device__ inline GradShared<kSlices>& tiles_of_block(const BackwardParams& p) {
  if constexpr (kInShared) return *reinterpret_cast<GradShared<kSlices>*>(grad_shared_memory);
  return static_cast<GradShared<kSlices>*>(p.tiles)[blockIdx.x];
}

template <int kSlices, bool kHeld, bool kInShared>
__global__ void __launch_bounds__(kGradThreads, kSlices == 1 && !kHeld ? 2 : 1)
    grad_rows_kernel(const __grid_constant__ BackwardParams p, int heads, int tiles) {
  trigger_and_wait();
  auto& shared = tiles_of_block<kSlices, kInShared>(p);
  for (int unit = blockIdx.x; unit < heads * tiles; unit += gridDim.x) {
    const int tile = tiles - 1 - unit / heads;  // those that see most keys first
    GradRows<kSlices, kHeld>(p, shared, unit % heads, int64_t{tile} * kGradTile).run();
    __syncthreads();
  }
}
template <int kSlices, bool kInShared>
__global__ void __launch_bounds__(kGradThreads, kSlices == 1 ? 2 : 1)
    grad_keys_kernel(const __grid_constant__ BackwardParams p, int heads, int tiles) {
  trigger_and_wait();
  auto& shared = tiles_of_block<kSlices, kInShared>(p);
  for (int unit = blockIdx.x; unit < heads * tiles; unit += gridDim.x) {
    GradKeys<kSlices>(p, shared, unit % heads, int64_t{unit / heads} * kGradTile).run();
    __syncthreads();
  }
}

constexpr int64_t kGradBlocks = 128;  // whose tiles are in the call's memory
// Whether shared memory holds the tiles of heads so wide; bytes of the call's memory otherwise.
template <int kSlices>
bool fits_tiles() {
  return sizeof(GradShared<kSlices>) <=
         static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}
bool tiles_in_shared(const Geometry& g) {
  if (variant() % 2) return false;
  const int64_t wide = g.d > g.dv ? g.d : g.dv;
  return wide <= kGradTile ? fits_tiles<1>() : wide <= 2 * kGradTile ? fits_tiles<2>() : fits_tiles<4>();
}
size_t tile_bytes(const Geometry& g) {
  return tiles_in_shared(g) ? 0 : kGradBlocks * sizeof(GradShared<4>);
}

template <int kSlices, bool kInShared>
void launch_gradients(const BackwardParams& p, Stream stream) {
  const Geometry& g = p.s.g;
  constexpr bool kMayHold = kSlices < 4;
  const int64_t heads = g.batch * g.kv_heads, rows = ceil_div(g.rows, kGradTile),
                keys = ceil_div(g.keys, kGradTile), most = kInShared ? INT32_MAX : kGradBlocks;
  const size_t bytes = kInShared ? sizeof(GradShared<kSlices>) : 0;
  const auto grid = [&](int64_t tiles) { return dim3(grid_for(num::min_i64(heads * tiles, most))); };
  const dim3 threads(kGradThreads);
  const int of_heads = static_cast<int>(heads), of_rows = static_cast<int>(rows);
  if (kMayHold && g.keys <= num::kChain && g.softcap == 0)
    launch_dependent(grad_rows_kernel<kSlices, kMayHold, kInShared>, grid(rows), threads, bytes, stream, p,
                     of_heads, of_rows);
  else
    launch_dependent(grad_rows_kernel<kSlices, false, kInShared>, grid(rows), threads, bytes, stream, p,
                     of_heads, of_rows);
  launch_dependent(grad_keys_kernel<kSlices, kInShared>, grid(keys), threads, bytes, stream, p, of_heads,
                   static_cast<int>(keys));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
