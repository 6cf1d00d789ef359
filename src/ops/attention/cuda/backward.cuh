// The gradients of attention on a GPU (attention.20 to attention.24): a kernel for tiles of rows,
// which gives what rows keep and dq, and one for tiles of keys, which gives dk and dv. Scores are
// computed again and never kept. A tile that is hidden is left out where contraction.5 allows, that
// is, unless it has infinities or NaN.
#pragma once
#include "ops/attention/cuda/backward_keys.cuh"
#include "ops/attention/cuda/backward_rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

extern __shared__ __align__(16) unsigned char grad_shared_memory[];

template <int kSlices, bool kHeld>
__global__ void __launch_bounds__(kGradThreads, kSlices == 1 && !kHeld ? 2 : 1)
    grad_rows_kernel(const __grid_constant__ BackwardParams p, int tiles) {
  trigger_and_wait();
  auto& shared = *reinterpret_cast<GradShared<kSlices>*>(grad_shared_memory);
  // The tiles that see most keys first.
  const int heads = gridDim.x / tiles, tile = tiles - 1 - static_cast<int>(blockIdx.x) / heads;
  GradRows<kSlices, kHeld>(p, shared, blockIdx.x % heads, int64_t{tile} * kGradTile).run();
}
template <int kSlices>
__global__ void __launch_bounds__(kGradThreads, kSlices == 1 ? 2 : 1)
    grad_keys_kernel(const __grid_constant__ BackwardParams p, int tiles) {
  trigger_and_wait();
  auto& shared = *reinterpret_cast<GradShared<kSlices>*>(grad_shared_memory);
  const int heads = gridDim.x / tiles;
  GradKeys<kSlices>(p, shared, blockIdx.x % heads, int64_t{blockIdx.x / heads} * kGradTile).run();
}

template <int kSlices>
void launch_gradients(const BackwardParams& p, Stream stream) {
  const Geometry& g = p.s.g;
  const int64_t heads = g.batch * g.kv_heads, rows = ceil_div(g.rows, kGradTile),
                keys = ceil_div(g.keys, kGradTile);
  const size_t bytes = sizeof(GradShared<kSlices>);
  const bool held = kSlices < 4 && g.keys <= num::kChain && g.softcap == 0;
  const dim3 grid(grid_for(heads * rows)), threads(kGradThreads);
  const int row_tiles = static_cast<int>(rows);
  if (held)
    launch_dependent(grad_rows_kernel < kSlices, kSlices<4>, grid, threads, bytes, stream, p, row_tiles);
  else
    launch_dependent(grad_rows_kernel<kSlices, false>, grid, threads, bytes, stream, p, row_tiles);
  launch_dependent(grad_keys_kernel<kSlices>, dim3(grid_for(heads * keys)), dim3(kGradThreads), bytes, stream,
                   p, static_cast<int>(keys));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
