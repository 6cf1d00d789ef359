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
// How a sum is shared out: rows of `group` neighbouring units, so that narrow units fill a block,
// and parts of these rows, so that few columns fill the device.
struct SumParts {
  int64_t group, parts;
};
SumParts sum_parts(const FixedUnits& s) {
  constexpr int64_t kBlocks = 512, kLeast = 16;
  if (s.n == 0) return {1, 1};
  const int64_t fitting = s.n < kThreads ? kThreads / s.n : 1;
  const int64_t group = s.units >= 2 * fitting ? fitting : 1;
  const int64_t wanted = kBlocks / ceil_div(s.n * group, kThreads), most = s.units / group / kLeast;
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
__global__ void __launch_bounds__(kThreads)
    sum_kernel(FixedUnits s, int64_t group, const float* x, uint64_t* out) {
  trigger_and_wait();
  const int64_t part = blockIdx.y, parts = gridDim.y, width = s.n * group;
  const int64_t rows = (s.units + group - 1) / group;
  const int64_t begin = rows * part / parts, end = rows * (part + 1) / parts;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x, step = int64_t{gridDim.x} * kThreads;
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
                   dim3(grid_for(ceil_div(s.n * p.group, kThreads)), static_cast<unsigned>(p.parts)),
                   dim3(kThreads), 0, stream, s, p.group, call.in[0].as<const float>(), partial);
  if (partials == 1) return;
  const int64_t n = s.n;
  launch_for_each(stream, n, [=] __device__(int64_t i) {
    uint64_t sum = 0;
    for (int64_t part = 0; part < partials; ++part) sum += partial[part * n + i];
    out[i] = sum;
  });
}

// The bits of the largest |x| of each unit, then sums of the units' magnitudes by blocks, then
// their sum: all in call.shared. A warp takes a part of a unit.
constexpr int64_t kPart = 1024, kSumBlocks = 256;
size_t magnitude_shared(const Call& call) {
  return static_cast<size_t>(kSumBlocks) * sizeof(uint64_t) +
         static_cast<size_t>(fixed_units(call).units) * sizeof(uint32_t);
}
__global__ void __launch_bounds__(kThreads) largest_kernel(FixedUnits s, const float* x, uint32_t* largest) {
  trigger_and_wait();
  constexpr int kWarps = kThreads / kWarp;
  const int64_t count = (s.n + kPart - 1) / kPart, first = threadIdx.x / kWarp;
  for (int64_t part = blockIdx.x * int64_t{kWarps} + first; part < s.units * count;
       part += int64_t{gridDim.x} * kWarps) {
    const int64_t u = part / count, begin = part % count * kPart;
    const int64_t end = s.n - begin < kPart ? s.n : begin + kPart;
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
__global__ void __launch_bounds__(kThreads) add_kernel(int64_t n, uint64_t* out, From from) {
  __shared__ uint64_t partial[kThreads];
  trigger_and_wait();
  uint64_t sum = 0;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < n; i += int64_t{gridDim.x} * kThreads) sum += from(i);
  partial[threadIdx.x] = sum;
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
template <class From>
void launch_add(Stream stream, int64_t n, int64_t blocks, uint64_t* out, From from) {
  launch_dependent(add_kernel<From>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, stream, n, out,
                   from);
}
void enqueue_largest(const FixedUnits& s, const float* x, uint32_t* largest, Stream stream) {
  launch_dependent(largest_kernel, dim3(grid_for(ceil_div(s.units * ceil_div(s.n, kPart), kThreads / kWarp))),
                   dim3(kThreads), 0, stream, s, x, largest);
}
// Adds the magnitudes of the units; sums: of kSumBlocks.
void enqueue_total(int64_t units, const uint32_t* largest, uint64_t* sums, uint64_t* out, Stream stream) {
  const auto magnitude = [=] __device__(int64_t u) {
    return static_cast<uint64_t>(fixed_magnitude_of(largest[u]));
  };
  const int64_t wanted = ceil_div(units, 16 * kThreads);
  if (wanted <= 1) return launch_add(stream, units, 1, out, magnitude);
  const int64_t blocks = wanted < kSumBlocks ? wanted : kSumBlocks;
  launch_add(stream, units, blocks, sums, magnitude);
  launch_add(stream, blocks, 1, out, [=] __device__(int64_t i) { return sums[i]; });
}

void enqueue_magnitude(const Call& call, Stream stream) {
  const FixedUnits s = fixed_units(call);
  auto* const sums = static_cast<uint64_t*>(call.shared);
  auto* const largest = reinterpret_cast<uint32_t*>(sums + kSumBlocks);
  launch_for_each(stream, s.units, [=] __device__(int64_t u) { largest[u] = 0; });
  enqueue_largest(s, call.in[0].as<const float>(), largest, stream);
  enqueue_total(s.units, largest, sums, call.out[0].as<uint64_t>(), stream);
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

extern const GpuKernel INVAR_ROW_OF(matmul);

namespace INVAR_ISA_NS {
namespace {

// Products of as many units as 64 MiB hold, by the kernel of matmul, then their sums; in
// call.shared as for the magnitude, the products, and the memory of matmul.
struct ProductParts {
  int64_t units;                        // at a time
  size_t largest, products, of_matmul;  // offsets
};
ProductParts product_parts(const FixedProducts& s) {
  constexpr int64_t kProductBytes = int64_t{64} << 20;
  const auto whole = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  const int64_t bytes = s.rows * s.columns * 4, fitting = bytes ? kProductBytes / bytes : 1;
  ProductParts p{};
  p.units = fitting < s.units ? fitting : s.units;
  if (p.units < 1) p.units = 1;
  p.largest = static_cast<size_t>(kSumBlocks) * sizeof(uint64_t);
  p.products = whole(p.largest + static_cast<size_t>(s.units) * sizeof(uint32_t));
  p.of_matmul = whole(p.products + static_cast<size_t>(p.units * bytes));
  return p;
}
size_t matmul_shared(const Call& call) {
  const FixedProducts s = fixed_products(call);
  const ProductParts p = product_parts(s);
  size_t most = 0;
  for (const int64_t units : {p.units, s.units % p.units}) {
    const UnitProducts u = unit_products(call, 0, units, nullptr);
    const size_t needed = INVAR_ROW_OF(matmul).shared_bytes({{u.in, 2}, {&u.out, 1}, &transposed_a()});
    most = needed > most ? needed : most;
  }
  return p.of_matmul + most;
}
void enqueue_matmul(const Call& call, Stream stream) {
  const FixedProducts s = fixed_products(call);
  const ProductParts p = product_parts(s);
  auto* const memory = static_cast<std::byte*>(call.shared);
  auto* const sums = reinterpret_cast<uint64_t*>(memory);
  auto* const largest = reinterpret_cast<uint32_t*>(memory + p.largest);
  auto* const products = reinterpret_cast<float*>(memory + p.products);
  uint64_t* const out = call.out[0].as<uint64_t>();
  const int64_t n = s.rows * s.columns;
  launch_for_each(stream, s.units, [=] __device__(int64_t u) { largest[u] = 0; });
  launch_for_each(stream, s.units ? 0 : n, [=] __device__(int64_t i) { out[i] = 0; });
  for (int64_t first = 0; n > 0 && first < s.units; first += p.units) {
    const int64_t units = s.units - first < p.units ? s.units - first : p.units;
    const UnitProducts u = unit_products(call, first, units, products);
    Call product{{u.in, 2}, {&u.out, 1}, &transposed_a()};
    product.shared = memory + p.of_matmul, product.gpu = call.gpu;
    INVAR_ROW_OF(matmul).enqueue(product, stream);
    enqueue_largest({units, n}, products, largest + first, stream);
    launch_for_each(stream, n, [=] __device__(int64_t i) {
      uint64_t sum = first ? out[i] : 0;
      for (int64_t j = 0; j < units; ++j) sum += fixed_point(products[j * n + i]);
      out[i] = sum;
    });
  }
  enqueue_total(s.units, largest, sums, out + n, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(fixed_sum), INVAR_ROW_OF(fixed_magnitude), INVAR_ROW_OF(fixed_value),
    INVAR_ROW_OF(fixed_matmul);
const GpuKernel INVAR_ROW_OF(fixed_sum) = {.op = "fixed_sum",
                                           .isa = INVAR_ISA,
                                           .shared_bytes = INVAR_ISA_NS::sum_shared,
                                           .enqueue = INVAR_ISA_NS::enqueue_sum};
const GpuKernel INVAR_ROW_OF(fixed_magnitude) = {.op = "fixed_magnitude",
                                                 .isa = INVAR_ISA,
                                                 .shared_bytes = INVAR_ISA_NS::magnitude_shared,
                                                 .enqueue = INVAR_ISA_NS::enqueue_magnitude};
const GpuKernel INVAR_ROW_OF(fixed_matmul) = {.op = "fixed_matmul",
                                              .isa = INVAR_ISA,
                                              .shared_bytes = INVAR_ISA_NS::matmul_shared,
                                              .enqueue = INVAR_ISA_NS::enqueue_matmul};
const GpuKernel INVAR_ROW_OF(fixed_value) = {
    .op = "fixed_value", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue_value};

}  // namespace invar::ops
