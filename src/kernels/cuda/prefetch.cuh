// Brings memory into the L2 cache, ahead of the loads that need it.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Both are multiples of 16. It may read weights before the grids ahead have ended.
__device__ inline void prefetch_bulk(const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
