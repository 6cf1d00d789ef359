// How cuda.cu files launch kernels. A kernel there is the work of one thread or one block of what
// cpu.cc writes as a loop, over the same graphs: on a GPU num/lane is a single lane, and
// num/contract and num/reduce hold the constants of the schedules.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>

#include "kernels/cpu/vector_io.h"
#include "kernels/gpu_kernel.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kFullWarp = 0xffffffffu;  // the mask of all lanes

// An attribute of the calling thread's device.
int device_attribute(cudaDeviceAttr what) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, what, device);
  return value;
}
int multiprocessors() {
  return device_attribute(cudaDevAttrMultiProcessorCount);
}

INVAR_INLINE int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Element i of an array of fixed size that the host fills for a kernel. More than it holds is a
// defect of the host code, which ends before it writes elsewhere.
template <class T, size_t n>
T& checked(T (&array)[n], int64_t i) {
  if (i < 0 || i >= static_cast<int64_t>(n)) std::abort();
  return array[i];
}

// The grid of a kernel whose blocks loop over units of work.
unsigned grid_for(int64_t blocks) {
  return static_cast<unsigned>(blocks < INT32_MAX ? blocks : INT32_MAX);
}

// Programmatic dependent launch (PTX griddepcontrol). A kernel of launch_dependent() may start once
// all blocks of the kernel before it have called trigger_next_grid() or ended. Each of its threads
// calls wait_for_previous_grid() before it writes anything or reads what kernels write. That call
// returns when the kernel before has ended and its results are visible. So such a kernel ends after
// all kernels before it, and an ordinary launch behind it waits for these as well.
__device__ inline void trigger_next_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_previous_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Both, for kernels that have nothing to do ahead of the wait.
__device__ inline void trigger_and_wait() {
  trigger_next_grid();
  wait_for_previous_grid();
}

__global__ void ptx_version_probe() {}
// Whether the calling thread's device runs code that has these instructions. Code that was made
// from older PTX has no wait, so its kernels must not start early.
bool supports_dependent_launch() {
  thread_local int known_device = -1;
  thread_local bool supported = false;
  int device = 0;
  cudaGetDevice(&device);
  if (device != known_device) {
    cudaFuncAttributes code{};
    supported = cudaFuncGetAttributes(&code, ptx_version_probe) == cudaSuccess && code.ptxVersion >= 90;
    known_device = device;
  }
  return supported;
}
// Allows a kernel all dynamic shared memory of the calling thread's device. The limit belongs to
// the process: a thread that set what its own launch needs would take it from another's between
// that one's limit and its launch.
inline void allow_shared(const void* kernel) {
  struct Allowed {
    const void* kernel;
    int device;
  };
  thread_local Allowed allowed[64] = {};  // by this thread
  int device = 0;
  cudaGetDevice(&device);
  Allowed& last = allowed[reinterpret_cast<uintptr_t>(kernel) / 16 % 64];
  if (last.kernel == kernel && last.device == device) return;
  cudaFuncAttributes code{};
  if (cudaFuncGetAttributes(&code, kernel) != cudaSuccess) return;  // the launch reports it
  cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
      device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(code.sharedSizeBytes));
  last = {kernel, device};
}
template <class... P, class... A>
void launch_kernel(bool dependent, unsigned cluster, void (*kernel)(P...), dim3 grid, dim3 block,
                   size_t shared, Stream stream, A... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared > (48 << 10)) allow_shared(reinterpret_cast<const void*>(kernel));
  cudaLaunchAttribute attribute[2] = {};
  unsigned attributes = 0;
  if (dependent) {
    cudaLaunchAttribute& a = attribute[attributes++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& a = attribute[attributes++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared, config.stream = stream;
  config.attrs = attribute, config.numAttrs = attributes;
  cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}
// Launches a kernel with `shared` bytes of dynamic shared memory. A grid without blocks launches
// nothing. Device::wait reports the error of a failed launch.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, Stream stream, A... args) {
  launch_kernel(false, 1, kernel, grid, block, shared, stream, args...);
}
template <class... P, class... A>
void launch_dependent(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, Stream stream, A... args) {
  launch_kernel(supports_dependent_launch(), 1, kernel, grid, block, shared, stream, args...);
}
// The same in thread block clusters; the caller has checked supports_dependent_launch().
template <class... P, class... A>
void launch_clusters(void (*kernel)(P...), unsigned cluster, dim3 grid, dim3 block, size_t shared,
                     Stream stream, A... args) {
  launch_kernel(true, cluster, kernel, grid, block, shared, stream, args...);
}

constexpr int kForEachThreads = 256;
template <class Fn>
__global__ void __launch_bounds__(kForEachThreads) for_each_kernel(int64_t n, Fn f) {
  trigger_and_wait();
  const int64_t step = int64_t{gridDim.x} * kForEachThreads;
  for (int64_t i = int64_t{blockIdx.x} * kForEachThreads + threadIdx.x; i < n; i += step) f(i);
}
// Calls f(i) for 0 <= i < n, each on a thread of its own.
template <class Fn>
void launch_for_each(Stream stream, int64_t n, Fn f) {
  constexpr int64_t kMaxBlocks = 1 << 20;  // beyond that threads loop
  const int64_t blocks = ceil_div(n, kForEachThreads);
  launch_dependent(for_each_kernel<Fn>,
                   dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
                   dim3(kForEachThreads), 0, stream, n, f);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
