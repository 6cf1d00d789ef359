// The kernel of matmul_integer for Hopper.
#include "ops/matmul/cuda/integer/gemm_hopper.cuh"
#include "ops/matmul/cuda/integer/hopper.h"

namespace invar::ops::INVAR_ISA_NS {

// Boxes of ByteGemmSizes::kBoxRows rows and kStepK bytes, in the 128-byte swizzle.
static bool map_rows(CUtensorMap& map, const uint8_t* p, int64_t rows, int64_t ld) {
  using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                              const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                              CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static const Encode encode = [] {
    void* symbol = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess)
      symbol = nullptr;
    return reinterpret_cast<Encode>(symbol);
  }();
  const cuuint64_t size[2] = {static_cast<cuuint64_t>(ld), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[1] = {static_cast<cuuint64_t>(ld)};
  const cuuint32_t box[2] = {kStepK, ByteGemmSizes::kBoxRows}, step[2] = {1, 1};
  return encode != nullptr &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<uint8_t*>(p), size, stride, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool enqueue_byte_gemm_hopper(const ByteProducts& in, bool unsigned_a, int64_t rows_a, int64_t columns_b,
                              Stream stream) {
  using G = ByteGemmSizes;
  CUtensorMap a, b;
  if (!map_rows(a, in.a, rows_a, in.ld_a) || !map_rows(b, in.b, columns_b, in.ld_b)) return false;
  const auto tiles =
      ProductTiles::of(ceil_div(in.s.m, G::kRows), ceil_div(in.s.n, G::kColumns), in.s.batches);
  if (unsigned_a)
    launch_product(ByteGemm<true>{{}, {}, in, tiles, a, b}, tiles.blocks(), stream);
  else
    launch_product(ByteGemm<false>{{}, {}, in, tiles, a, b}, tiles.blocks(), stream);
  return true;
}

}  // namespace invar::ops::INVAR_ISA_NS
