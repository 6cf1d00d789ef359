// Asynchronous copies from global to shared memory (cp.async, from compute capability 8.0 on; plain
// copies before). Where `in_bounds` is false, zeros arrive and nothing is read.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Copies the first n of four floats; the others become 0. `from` is aligned to 16 bytes.
__device__ inline void copy_async_partial(float* to, const float* from, int n) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(4 * n)
               : "memory");
#else
  for (int i = 0; i < 4; ++i) to[i] = i < n ? from[i] : 0;
#endif
}
__device__ inline void copy_async_16(void* to, const void* from, bool in_bounds) {
  copy_async_partial(static_cast<float*>(to), static_cast<const float*>(from), in_bounds ? 4 : 0);
}
__device__ inline void copy_async_4(float* to, const float* from, bool in_bounds) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(in_bounds ? 4 : 0)
               : "memory");
#else
  *to = in_bounds ? *from : 0;
#endif
}
// commit_copies() makes a group of the copies since the last commit. wait_copies<n>() returns when
// all but the last n groups have arrived.
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int n>
__device__ inline void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
