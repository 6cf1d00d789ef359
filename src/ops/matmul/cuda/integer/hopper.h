// The kernel for Hopper, compiled for compute capability 9.0a alone (sm90a/integer.cu).
#pragma once
#include "ops/matmul/cuda/integer/tensor_cores.cuh"

namespace invar::ops::INVAR_ISA_NS {

// rows_a, columns_b: of all matrices. in.splits is 1. False: the driver has no tensor maps, and
// nothing was enqueued.
bool enqueue_byte_gemm_hopper(const ByteProducts& in, bool unsigned_a, int64_t rows_a, int64_t columns_b,
                              Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
