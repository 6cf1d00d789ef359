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

template <int kSlices>
__global__ void __launch_bounds__(kGradThreads) grad_rows_kernel(BackwardParams p, int tiles) {
  trigger_and_wait();
  auto& shared = *reinterpret_cast<GradShared<kSlices>*>(grad_shared_memory);
  // The tiles that see most keys first.
  const GradRows<kSlices> rows(p, shared, blockIdx.x / tiles,
                               int64_t{tiles - 1 - static_cast<int>(blockIdx.x % tiles)} * kGradTile);
  rows.find_top();
  rows.find_total();
  rows.find_mean();
  rows.find_gradient();
}
template <int kSlices>
__global__ void __launch_bounds__(kGradThreads) grad_keys_kernel(BackwardParams p, int tiles) {
  trigger_and_wait();
  auto& shared = *reinterpret_cast<GradShared<kSlices>*>(grad_shared_memory);
  GradKeys<kSlices>(p, shared, blockIdx.x / tiles, int64_t{blockIdx.x % tiles} * kGradTile).run();
}

template <int kSlices>
void launch_gradients(const BackwardParams& p, Stream stream) {
  const Geometry& g = p.s.g;
  const int64_t heads = g.batch * g.kv_heads, rows = ceil_div(g.rows, kGradTile),
                keys = ceil_div(g.keys, kGradTile);
  const size_t bytes = sizeof(GradShared<kSlices>);
  launch_dependent(grad_rows_kernel<kSlices>, dim3(grid_for(heads * rows)), dim3(kGradThreads), bytes, stream,
                   p, static_cast<int>(rows));
  launch_dependent(grad_keys_kernel<kSlices>, dim3(grid_for(heads * keys)), dim3(kGradThreads), bytes, stream,
                   p, static_cast<int>(keys));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
