// The kernel for Hopper. It is compiled for compute capability 9.0a alone (sm90a/), where the build
// makes code for 9.0.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {

// Of heads whose keys and values have at most 128 elements; scores are scaled products.
void enqueue_exact_prefill_hopper(const AttentionParams& s, Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
