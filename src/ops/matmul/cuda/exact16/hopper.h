// The kernels for Hopper. They are compiled for compute capability 9.0a alone (sm90a/), where the
// build makes code for 9.0.
#pragma once
#include "ops/matmul/cuda/exact16/select.h"

namespace invar::ops::INVAR_ISA_NS {

// They set in.of[].first and in.columns.
void enqueue_gemm_hopper(ExactTogether in, Stream stream);
// packed: b may be read before the grids ahead have ended.
void enqueue_gemv_hopper(ExactTogether in, const GemvWork& work, bool packed, Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
