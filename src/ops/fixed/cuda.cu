// Fixed-point sums: a thread for each column of a part of the units; integers, so that parts join
// in any order.
#include "kernels/cuda/launch.h"
#include "ops/fixed/fixed.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// fixed.2
__device__ inline uint64_t fixed_point(float x) {
  if (!(fabsf(x) < kFixedLimit)) return 0;
  return static_cast<uint64_t>(__float2ll_rn(x * kFixedScale));
}

constexpr int kThreads = 256;
// Parts of the units, so that few columns fill the device, too.
int64_t sum_parts(const FixedUnits& s) {
  constexpr int64_t kBlocks = 512, kLeast = 16;
  const int64_t blocks = ceil_div(s.n, kThreads), wanted = blocks ? kBlocks / blocks : 1;
  const int64_t most = s.units / kLeast;
  const int64_t parts = wanted < most ? wanted : most;
  return parts > 1 ? parts : 1;
}
size_t sum_shared(const Call& call) {
  const FixedUnits s = fixed_units(call);
  const int64_t parts = sum_parts(s);
  return parts > 1 ? static_cast<size_t>(parts * s.n) * sizeof(uint64_t) : 0;
}
__global__ void __launch_bounds__(kThreads) sum_kernel(FixedUnits s, const float* x, uint64_t* out) {
  trigger_and_wait();
  const int64_t part = blockIdx.y, parts = gridDim.y;
  const int64_t begin = s.units * part / parts, end = s.units * (part + 1) / parts;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < s.n;
       i += int64_t{gridDim.x} * kThreads) {
    uint64_t sum = 0;
#pragma unroll 8
    for (int64_t u = begin; u < end; ++u) sum += fixed_point(x[u * s.n + i]);
    out[part * s.n + i] = sum;
  }
}
void enqueue_sum(const Call& call, Stream stream) {
  const FixedUnits s = fixed_units(call);
  const int64_t parts = sum_parts(s);
  uint64_t* const out = call.out[0].as<uint64_t>();
  uint64_t* const partial = parts > 1 ? static_cast<uint64_t*>(call.shared) : out;
  launch_dependent(sum_kernel, dim3(grid_for(ceil_div(s.n, kThreads)), static_cast<unsigned>(parts)),
                   dim3(kThreads), 0, stream, s, call.in[0].as<const float>(), partial);
  if (parts > 1) {
    const int64_t n = s.n;
    launch_for_each(stream, n, [=] __device__(int64_t i) {
      uint64_t sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += partial[part * n + i];
      out[i] = sum;
    });
  }
}

// The bits of the largest |x| of each unit into call.shared, then their sum by one block.
constexpr int64_t kPart = 8192;
size_t magnitude_shared(const Call& call) {
  return static_cast<size_t>(fixed_units(call).units) * sizeof(uint32_t);
}
__global__ void __launch_bounds__(kThreads) largest_kernel(FixedUnits s, const float* x, uint32_t* largest) {
  trigger_and_wait();
  const int64_t count = (s.n + kPart - 1) / kPart;
  for (int64_t part = blockIdx.x; part < s.units * count; part += gridDim.x) {
    const int64_t u = part / count, begin = part % count * kPart;
    const int64_t end = s.n - begin < kPart ? s.n : begin + kPart;
    uint32_t most = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
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
__global__ void __launch_bounds__(kThreads)
    magnitude_kernel(int64_t units, const uint32_t* largest, uint64_t* out) {
  __shared__ uint64_t partial[kThreads];
  trigger_and_wait();
  uint64_t sum = 0;
  for (int64_t u = threadIdx.x; u < units; u += kThreads)
    sum += static_cast<uint64_t>(fixed_magnitude_of(largest[u]));
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kThreads; ++i) sum += partial[i];
  *out = sum;
}
void enqueue_magnitude(const Call& call, Stream stream) {
  const FixedUnits s = fixed_units(call);
  auto* const largest = static_cast<uint32_t*>(call.shared);
  launch_for_each(stream, s.units, [=] __device__(int64_t u) { largest[u] = 0; });
  launch_dependent(largest_kernel, dim3(grid_for(s.units * ceil_div(s.n, kPart))), dim3(kThreads), 0, stream,
                   s, call.in[0].as<const float>(), largest);
  launch_dependent(magnitude_kernel, dim3(1), dim3(kThreads), 0, stream, s.units, largest,
                   call.out[0].as<uint64_t>());
}

void enqueue_value(const Call& call, Stream stream) {
  const int64_t* const x = call.in[0].as<const int64_t>();
  const int64_t* const magnitude = call.in[1].as<const int64_t>();
  float* const out = call.out[0].as<float>();
  launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) {
    out[i] = fixed_is_valid(*magnitude) ? __ll2float_rn(x[i]) * 0x1p-49f : __uint_as_float(0x7fc00000);
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(fixed_sum), INVAR_ROW_OF(fixed_magnitude), INVAR_ROW_OF(fixed_value);
const GpuKernel INVAR_ROW_OF(fixed_sum) = {.op = "fixed_sum",
                                           .isa = INVAR_ISA,
                                           .shared_bytes = INVAR_ISA_NS::sum_shared,
                                           .enqueue = INVAR_ISA_NS::enqueue_sum};
const GpuKernel INVAR_ROW_OF(fixed_magnitude) = {.op = "fixed_magnitude",
                                                 .isa = INVAR_ISA,
                                                 .shared_bytes = INVAR_ISA_NS::magnitude_shared,
                                                 .enqueue = INVAR_ISA_NS::enqueue_magnitude};
const GpuKernel INVAR_ROW_OF(fixed_value) = {
    .op = "fixed_value", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue_value};

}  // namespace invar::ops
