// The kernels for Hopper. They are compiled for compute capability 9.0a alone (sm90a/exact16/),
// where the build makes code for 9.0.
#pragma once
#include "ops/matmul/cuda/exact16/grouped/product.h"

namespace invar::ops::INVAR_ISA_NS {

void enqueue_grouped_gemv_hopper(const GroupedExact& in, Stream stream);
void enqueue_grouped_gemm_hopper(const GroupedExact& in, Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
