// The kernels of matmul_exact16 for Hopper.
#include "ops/matmul/cuda/exact16/gemm_hopper.cuh"
#include "ops/matmul/cuda/exact16/gemv_hopper.cuh"
#include "ops/matmul/cuda/exact16/hopper.h"

namespace invar::ops::INVAR_ISA_NS {

static void count_columns(ExactTogether& in, int64_t tile) {
  in.columns = 0;
  for (int i = 0; i < in.count; ++i) {
    in.of[i].first = in.columns;
    in.columns += static_cast<int>(ceil_div(in.of[i].n, tile));
  }
}

void enqueue_gemm_hopper(ExactTogether in, Stream stream) {
  count_columns(in, kGemmTile);
  GemmTiles tiles{};
  tiles.rows = static_cast<int>(ceil_div(in.s.m, kGemmTile));
  tiles.columns = in.columns;
  tiles.per_product = tiles.rows * tiles.columns;
  tiles.all = tiles.per_product * static_cast<int>(in.s.batches);
  const int most = multiprocessors();
  launch_dependent(exact16_gemm_kernel, dim3(grid_for(tiles.all < most ? tiles.all : most)),
                   dim3(kGemmThreads), kGemmShared, stream, in, tiles);
}

template <int kRows, int kGroups>
static void enqueue_gemv_of(const ExactTogether& in, const GemvWork& work, bool packed, Stream stream) {
  using R = GemvHopper<kRows, kGroups>;
  // Its threads that read results of earlier kernels, or write, wait for those first; the one that
  // loads weights does so behind its first loads.
  const auto kernel = exact16_gemv_kernel<kRows, kGroups>;
  launch_dependent(kernel, dim3(grid_for(work.grid)), dim3(R::kThreads), R::kShared, stream, in, work,
                   packed);
}
void enqueue_gemv_hopper(ExactTogether in, const GemvWork& work, bool packed, Stream stream) {
  count_columns(in, kBlockRows);
  if (work.groups == 2) return enqueue_gemv_of<64, 2>(in, work, packed, stream);
  if (work.rows == 64) return enqueue_gemv_of<64, 1>(in, work, packed, stream);
  if (work.rows == 32) return enqueue_gemv_of<32, 1>(in, work, packed, stream);
  if (work.rows == 16) return enqueue_gemv_of<16, 1>(in, work, packed, stream);
  enqueue_gemv_of<8, 1>(in, work, packed, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
