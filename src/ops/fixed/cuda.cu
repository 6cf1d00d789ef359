// Fixed-point sums: a thread for each column of a part of the units; integers, so that parts join
// in any order.
#include "kernels/cuda/fixed_sums.cuh"
#include "ops/fixed/fixed.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// How a sum is shared out: rows of `group` neighbouring units, so that narrow units fill a block,
// and parts of these rows, so that few columns fill the device.
struct SumParts {
  int64_t group, parts;
};
SumParts sum_parts(const FixedUnits& s) {
  constexpr int64_t kBlocks = 512, kLeast = 16;
  if (s.n == 0) return {1, 1};
  const int64_t fitting = s.n < kFixedThreads ? kFixedThreads / s.n : 1;
  const int64_t group = s.units >= 2 * fitting ? fitting : 1;
  const int64_t wanted = kBlocks / ceil_div(s.n * group, kFixedThreads), most = s.units / group / kLeast;
  const int64_t parts = wanted < most ? wanted : most;
  return {group, parts > 1 ? parts : 1};
}
size_t sum_shared(const Call& call) {
  const FixedUnits s = fixed_units(call);
  const SumParts p = sum_parts(s);
  const int64_t partial = p.parts * p.group;
  return partial > 1 ? static_cast<size_t>(partial * s.n) * sizeof(uint64_t) : 0;
}
// out [part, unit of the group, column].
__global__ void __launch_bounds__(kFixedThreads)
    sum_kernel(FixedUnits s, int64_t group, const float* x, uint64_t* out) {
  trigger_and_wait();
  const int64_t part = blockIdx.y, parts = gridDim.y, width = s.n * group;
  const int64_t rows = (s.units + group - 1) / group;
  const int64_t begin = rows * part / parts, end = rows * (part + 1) / parts;
  const int64_t first = int64_t{blockIdx.x} * kFixedThreads + threadIdx.x,
                step = int64_t{gridDim.x} * kFixedThreads;
  for (int64_t i = first; i < width; i += step) {
    const int64_t own = (s.units - i / s.n + group - 1) / group;  // the last row may be shorter
    const int64_t last = end < own ? end : own;
    uint64_t sum = 0;
#pragma unroll 8
    for (int64_t row = begin; row < last; ++row) sum += fixed_point(x[row * width + i]);
    out[part * width + i] = sum;
  }
}
void enqueue_sum(const Call& call, Stream stream) {
  const FixedUnits s = fixed_units(call);
  const SumParts p = sum_parts(s);
  const int64_t partials = p.parts * p.group;
  uint64_t* const out = call.out[0].as<uint64_t>();
  uint64_t* const partial = partials > 1 ? static_cast<uint64_t*>(call.shared) : out;
  launch_dependent(sum_kernel,
                   dim3(grid_for(ceil_div(s.n * p.group, kFixedThreads)), static_cast<unsigned>(p.parts)),
                   dim3(kFixedThreads), 0, stream, s, p.group, call.in[0].as<const float>(), partial);
  if (partials == 1) return;
  const int64_t n = s.n;
  launch_for_each(stream, n, [=] __device__(int64_t i) {
    uint64_t sum = 0;
    for (int64_t part = 0; part < partials; ++part) sum += partial[part * n + i];
    out[i] = sum;
  });
}

size_t magnitude_shared(const Call& call) {
  return static_cast<size_t>(kFixedSumBlocks) * sizeof(uint64_t) +
         static_cast<size_t>(fixed_units(call).units) * sizeof(uint32_t);
}
void enqueue_magnitude(const Call& call, Stream stream) {
  const FixedUnits s = fixed_units(call);
  auto* const sums = static_cast<uint64_t*>(call.shared);
  auto* const largest = reinterpret_cast<uint32_t*>(sums + kFixedSumBlocks);
  launch_for_each(stream, s.units, [=] __device__(int64_t u) { largest[u] = 0; });
  enqueue_largest({s.units, s.n}, call.in[0].as<const float>(), largest, stream);
  enqueue_total(s.units, largest, sums, call.out[0].as<uint64_t>(), stream);
}

void enqueue_value(const Call& call, Stream stream) {
  const int64_t* const x = call.in[0].as<const int64_t>();
  const int64_t* const magnitude = call.in[1].as<const int64_t>();
  float* const out = call.out[0].as<float>();
  launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) {
    out[i] = num::fixed_is_valid(*magnitude) ? __ll2float_rn(x[i]) * 0x1p-49f : __uint_as_float(0x7fc00000);
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
