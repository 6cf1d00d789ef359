// How cuda.cu files start kernels. A kernel there is one thread's or one block's part of what cpu.cc writes as a loop, over
// the same graphs: num/lane is a single lane on a GPU, and num/contract and num/reduce have the schedules' constants.
#pragma once
#include <cuda_runtime.h>

#include "ops/lanes.h"

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

// Starts a kernel with `shared` bytes of dynamic shared memory; a grid without blocks is nothing to do. What is wrong with a
// launch shows in Device::wait.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, Stream stream, A... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared > (48 << 10))
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  kernel<<<grid, block, shared, stream>>>(args...);
}

constexpr int kEachThreads = 256;
template <class Fn>
__global__ void __launch_bounds__(kEachThreads) each_kernel(int64_t n, Fn f) {
  const int64_t step = int64_t{gridDim.x} * kEachThreads;
  for (int64_t i = int64_t{blockIdx.x} * kEachThreads + threadIdx.x; i < n; i += step) f(i);
}
// f(i) for 0 <= i < n, each on a thread of its own.
template <class Fn>
void each(Stream stream, int64_t n, Fn f) {
  constexpr int64_t kMostBlocks = 1 << 20;  // more work than that is several turns of a thread
  const int64_t blocks = ceil_div(n, kEachThreads);
  launch(each_kernel<Fn>, dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)),
         dim3(kEachThreads), 0, stream, n, f);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
