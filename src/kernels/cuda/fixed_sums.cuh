// Sums of f32 in fixed point (spec/ops/fixed.md) and the magnitudes that guard them.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/fixed/fixed_point.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The units of a sum, of n elements each.
struct FixedRows {
  int64_t units, n;
};

// fixed.2
__device__ inline uint64_t fixed_point(float x) {
  if (!(fabsf(x) < num::kFixedLimit)) return 0;
  return static_cast<uint64_t>(__float2ll_rn(x * num::kFixedScale));
}

constexpr int kFixedThreads = 256;
// The bits of the largest |x| of each unit, then sums of the units' magnitudes by blocks, then
// their sum: all in call.shared. A warp takes a part of a unit.
constexpr int64_t kFixedPart = 1024, kFixedSumBlocks = 256;
__global__ void __launch_bounds__(kFixedThreads)
    fixed_largest_kernel(FixedRows s, const float* x, uint32_t* largest) {
  trigger_and_wait();
  constexpr int kWarps = kFixedThreads / kWarp;
  const int64_t count = (s.n + kFixedPart - 1) / kFixedPart, first = threadIdx.x / kWarp;
  for (int64_t part = blockIdx.x * int64_t{kWarps} + first; part < s.units * count;
       part += int64_t{gridDim.x} * kWarps) {
    const int64_t u = part / count, begin = part % count * kFixedPart;
    const int64_t end = s.n - begin < kFixedPart ? s.n : begin + kFixedPart;
    uint32_t most = 0;
#pragma unroll 8
    for (int64_t i = begin + threadIdx.x % kWarp; i < end; i += kWarp) {
      const uint32_t v = __float_as_uint(x[u * s.n + i]) & 0x7fffffffu;
      most = v > most ? v : most;
    }
#pragma unroll
    for (int stride = kWarp / 2; stride > 0; stride /= 2) {
      const uint32_t other = __shfl_xor_sync(kFullWarp, most, stride);
      most = other > most ? other : most;
    }
    if (threadIdx.x % kWarp == 0) atomicMax(&largest[u], most);
  }
}
// out[block] = the sum of from(i) for i < n by the block.
template <class From>
__global__ void __launch_bounds__(kFixedThreads) fixed_add_kernel(int64_t n, uint64_t* out, From from) {
  __shared__ uint64_t partial[kFixedThreads];
  trigger_and_wait();
  uint64_t sum = 0;
  const int64_t first = int64_t{blockIdx.x} * kFixedThreads + threadIdx.x;
  for (int64_t i = first; i < n; i += int64_t{gridDim.x} * kFixedThreads) sum += from(i);
  partial[threadIdx.x] = sum;
  for (int stride = kFixedThreads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
template <class From>
void launch_fixed_add(Stream stream, int64_t n, int64_t blocks, uint64_t* out, From from) {
  launch_dependent(fixed_add_kernel<From>, dim3(static_cast<unsigned>(blocks)), dim3(kFixedThreads), 0,
                   stream, n, out, from);
}
void enqueue_largest(const FixedRows& s, const float* x, uint32_t* largest, Stream stream) {
  launch_dependent(fixed_largest_kernel,
                   dim3(grid_for(ceil_div(s.units * ceil_div(s.n, kFixedPart), kFixedThreads / kWarp))),
                   dim3(kFixedThreads), 0, stream, s, x, largest);
}
// Adds the magnitudes of the units; sums: of kFixedSumBlocks.
void enqueue_total(int64_t units, const uint32_t* largest, uint64_t* sums, uint64_t* out, Stream stream) {
  const auto magnitude = [=] __device__(int64_t u) {
    return static_cast<uint64_t>(num::fixed_magnitude_of(largest[u]));
  };
  const int64_t wanted = ceil_div(units, 16 * kFixedThreads);
  if (wanted <= 1) return launch_fixed_add(stream, units, 1, out, magnitude);
  const int64_t blocks = wanted < kFixedSumBlocks ? wanted : kFixedSumBlocks;
  launch_fixed_add(stream, units, blocks, sums, magnitude);
  launch_fixed_add(stream, blocks, 1, out, [=] __device__(int64_t i) { return sums[i]; });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
