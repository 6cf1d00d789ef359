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
  const auto tiles = ProductTiles::of(ceil_div(in.s.m, kGemmTile), in.columns, in.s.batches);
  launch_product(ExactGemm{{}, in, tiles}, tiles.blocks(), stream);
}

template <int kRows, int kGroups>
static void enqueue_gemv_of(const ExactTogether& in, const GemvWork& work, bool packed, Stream stream) {
  launch_product(ExactGemv<kRows, kGroups>{{}, in, work, packed}, work.grid, stream);
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
