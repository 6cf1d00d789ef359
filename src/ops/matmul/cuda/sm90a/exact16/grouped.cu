// The kernels of grouped_matmul_exact16 for Hopper.
#include "ops/matmul/cuda/exact16/grouped/gemm_hopper.cuh"
#include "ops/matmul/cuda/exact16/grouped/gemv_hopper.cuh"
#include "ops/matmul/cuda/exact16/grouped/hopper.h"

namespace invar::ops::INVAR_ISA_NS {

template <int kRows>
static void enqueue_gemv_of(const GroupedExact& in, Stream stream) {
  launch_product(GroupedGemv<kRows>{{}, in}, in.most_grid, stream);
}
void enqueue_grouped_gemv_hopper(const GroupedExact& in, Stream stream) {
  if (in.a.height == 64) return enqueue_gemv_of<64>(in, stream);
  if (in.a.height == 32) return enqueue_gemv_of<32>(in, stream);
  if (in.a.height == 16) return enqueue_gemv_of<16>(in, stream);
  enqueue_gemv_of<8>(in, stream);
}
void enqueue_grouped_gemm_hopper(const GroupedExact& in, Stream stream) {
  launch_product(GroupedGemm{{}, in}, in.most_grid, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
