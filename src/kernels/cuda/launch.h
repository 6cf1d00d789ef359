// How cuda.cu files start kernels. A kernel there is one thread's or one block's part of what cpu.cc writes as a loop, over
// the same graphs: num/lane is a single lane on a GPU, and num/contract and num/reduce have the schedules' constants.
#pragma once
#include <cuda_runtime.h>

#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Of the calling thread's device.
int device_attribute(cudaDeviceAttr what) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, what, device);
  return value;
}
int processors() {
  return device_attribute(cudaDevAttrMultiProcessorCount);
}

INVAR_INLINE int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Kernels whose blocks go on with the work of further ones.
unsigned grid_for(int64_t blocks) {
  return static_cast<unsigned>(blocks < INT32_MAX ? blocks : INT32_MAX);
}

// Programmatic dependent launch: a kernel of launch_early() may start once all blocks of the kernel before it have called
// release_next() or ended. Every thread of it calls await_previous() before it reads what kernels write or writes anything:
// that returns when the kernel before has ended and its results are seen. So such a kernel ends after the one before, thus
// after all before, and whoever waits for it or starts behind it in the ordinary way has waited for these, too.
__device__ inline void release_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Both, for kernels that have nothing to do before.
__device__ inline void follow() {
  release_next();
  await_previous();
}

__global__ void which_code() {}
// Whether the calling thread's device runs code that has these instructions: what was made from older PTX waits for nothing.
bool starts_early() {
  thread_local int asked = -1;
  thread_local bool early = false;
  int device = 0;
  cudaGetDevice(&device);
  if (device != asked) {
    cudaFuncAttributes code{};
    early = cudaFuncGetAttributes(&code, which_code) == cudaSuccess && code.ptxVersion >= 90;
    asked = device;
  }
  return early;
}
template <class... P, class... A>
void start(bool early, unsigned cluster, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
           Stream stream, A... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared > (48 << 10))
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  cudaLaunchAttribute attribute[2] = {};
  unsigned attributes = 0;
  if (early) {
    cudaLaunchAttribute& a = attribute[attributes++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& a = attribute[attributes++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  }
  cudaLaunchConfig_t how{};
  how.gridDim = grid, how.blockDim = block, how.dynamicSmemBytes = shared, how.stream = stream;
  how.attrs = attribute, how.numAttrs = attributes;
  cudaLaunchKernelEx(&how, kernel, static_cast<P>(args)...);
}
// Starts a kernel with `shared` bytes of dynamic shared memory; a grid without blocks is nothing to do. What is wrong with a
// launch shows in Device::wait.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, Stream stream, A... args) {
  start(false, 1, kernel, grid, block, shared, stream, args...);
}
template <class... P, class... A>
void launch_early(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, Stream stream, A... args) {
  start(starts_early(), 1, kernel, grid, block, shared, stream, args...);
}
// The same in clusters of so many blocks, where starts_early().
template <class... P, class... A>
void launch_clusters(void (*kernel)(P...), unsigned cluster, dim3 grid, dim3 block, size_t shared,
                     Stream stream, A... args) {
  start(true, cluster, kernel, grid, block, shared, stream, args...);
}

constexpr int kEachThreads = 256;
template <class Fn>
__global__ void __launch_bounds__(kEachThreads) each_kernel(int64_t n, Fn f) {
  follow();
  const int64_t step = int64_t{gridDim.x} * kEachThreads;
  for (int64_t i = int64_t{blockIdx.x} * kEachThreads + threadIdx.x; i < n; i += step) f(i);
}
// f(i) for 0 <= i < n, each on a thread of its own.
template <class Fn>
void each(Stream stream, int64_t n, Fn f) {
  constexpr int64_t kMostBlocks = 1 << 20;  // more work than that is several turns of a thread
  const int64_t blocks = ceil_div(n, kEachThreads);
  launch_early(each_kernel<Fn>, dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)),
               dim3(kEachThreads), 0, stream, n, f);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
