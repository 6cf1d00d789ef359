// Copies from device to shared memory that go on while the thread computes (cp.async, from compute capability 8.0 on; before
// that they are done at once). Where `there` is false, zeros arrive and nothing is read.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The first n of four floats; `from` is aligned to 16 bytes.
__device__ inline void copy_part(float* to, const float* from, int n) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(4 * n)
               : "memory");
#else
  for (int i = 0; i < 4; ++i) to[i] = i < n ? from[i] : 0;
#endif
}
__device__ inline void copy_16(void* to, const void* from, bool there) {
  copy_part(static_cast<float*>(to), static_cast<const float*>(from), there ? 4 : 0);
}
__device__ inline void copy_4(float* to, const float* from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(there ? 4 : 0)
               : "memory");
#else
  *to = there ? *from : 0;
#endif
}
// The copies asked for since the last end are one group; copies_wait<n> returns when all but the last n groups are there.
__device__ inline void copies_end() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int n>
__device__ inline void copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
