// Rows of mul, and of an activation times another operand, that are rounded where they are made:
// one kernel reads the operands and writes integers of 16 bits.
#include <cooperative_groups.h>

#include "kernels/call.h"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/vectorized_loop.h"
#include "kernels/fusion/rounding_kernels.h"
#include "ops/elementwise/cuda/rounded_products.h"
#include "ops/elementwise/graphs/activations.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kMostWarps = 16, kQuad = 4, kMostClusters = 8;
constexpr int64_t kLongestRow = 32768;

// The largest of all blocks of a cluster; for several rows one after another.
__device__ uint32_t largest_in_cluster(uint32_t largest) {
  largest = largest_in_block(largest);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ uint32_t of_block;
  const auto cluster = cooperative_groups::this_cluster();
  if (cluster.num_blocks() > 1) {
    if (threadIdx.x == 0) of_block = largest;
    cluster.sync();
    for (unsigned b = 0; b < cluster.num_blocks(); ++b) {
      const uint32_t u = *cluster.map_shared_rank(&of_block, b);
      largest = u > largest ? u : largest;
    }
    cluster.sync();  // no block goes on while others read its memory
    return largest;
  }
#endif
  __syncthreads();
  return largest;
}

struct Rows {
  const float *a, *b;
  int64_t k, count;
  bool packs;  // quads of elements are aligned
};
__device__ Pack<float, kQuad> load_quad(const float* row, int64_t i, int64_t k, bool packs) {
  if (packs && i < k) return load_pack<kQuad>(row + i);
  Pack<float, kQuad> x;
  for (int j = 0; j < kQuad; ++j) x.v[j] = i + j < k ? row[i + j] : 0.0f;
  return x;
}

// A cluster of blocks for each row, a warp for chunks of kRoundedK elements. held: what a block
// makes fits its shared memory; else it is made twice.
template <class Fn>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    rounded_rows_kernel(Rows from, RoundedRows to, int blocks, bool held) {
  extern __shared__ float4 made[];
  trigger_and_wait();
  const int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp, part = blockIdx.x % blocks;
  const int chunks = static_cast<int>(to.chunks), each = (chunks + blocks - 1) / blocks;
  const int first = part * each, end = first + each < chunks ? first + each : chunks;
  const int64_t step = gridDim.x / blocks;
  for (int64_t r = blockIdx.x / blocks; r < from.count; r += step) {
    const float *a = from.a + r * from.k, *b = from.b + r * from.k;
    auto make = [&](int chunk) {
      const int64_t i = int64_t{chunk} * kRoundedK + lane * kQuad;
      const auto x = load_quad(a, i, from.k, from.packs), y = load_quad(b, i, from.k, from.packs);
      Pack<float, kQuad> result;
#pragma unroll
      for (int j = 0; j < kQuad; ++j) result.v[j] = i + j < from.k ? Fn::apply(x.v[j], y.v[j]) : 0.0f;
      return result;
    };
    auto* const own = reinterpret_cast<Pack<float, kQuad>*>(made) + lane;
    uint32_t largest = 0;
#pragma unroll 1
    for (int chunk = first + threadIdx.x / kWarp; chunk < end; chunk += warps) {
      const auto result = make(chunk);
      for (const float one : result.v) largest = largest_of(largest, one);
      if (held) own[(chunk - first) * kWarp] = result;
    }
    const int32_t e = num::exact16_scale(largest_in_cluster(largest));
    const RoundedRow out(to, r, e);
#pragma unroll 1
    for (int chunk = first + threadIdx.x / kWarp; chunk < end; chunk += warps) {
      const auto result = held ? own[(chunk - first) * kWarp] : make(chunk);
      out.store<kQuad>(int64_t{chunk} * kRoundedK + lane * kQuad, result.v);
    }
    if (part == 0 && threadIdx.x == 0) to.scales[r] = e;
    if (part == 0 && r == 0) clear_scales(to, from.count, threadIdx.x, blockDim.x);
  }
}

// Few rows take several blocks each: as many as run at once.
template <class Fn>
void launch_rows(const Rows& from, const RoundedRows& to, Stream stream) {
  const int64_t chunks = ceil_div(from.k, kRoundedK), at_once = 4 * multiprocessors();
  int blocks = supports_dependent_launch() ? kMostClusters : 1;
  while (blocks > 1 && (blocks * from.count > at_once || blocks > chunks)) blocks /= 2;
  const int64_t each = ceil_div(chunks, blocks);
  const auto bytes = static_cast<size_t>(each * kRoundedK) * sizeof(float);
  const bool held = bytes <= static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const int64_t rows = from.count < (1 << 24) ? from.count : 1 << 24;
  const dim3 grid(static_cast<unsigned>(rows * blocks));
  const dim3 threads(static_cast<unsigned>(each < kMostWarps ? each : kMostWarps) * kWarp);
  const size_t shared = held ? bytes : 0;
  if (blocks > 1)
    launch_clusters(rounded_rows_kernel<Fn>, static_cast<unsigned>(blocks), grid, threads, shared, stream,
                    from, to, blocks, held);
  else
    launch_dependent(rounded_rows_kernel<Fn>, grid, threads, shared, stream, from, to, blocks, held);
}

// mul after a graph of its one operand, each with its store rule (formats.5).
struct Product {
  __device__ static float apply(float x, float y) { return canonicalize(graph::mul(F{x}, F{y})).v; }
};
#define INVAR_ACTIVATION(Name, name)                               \
  struct Name {                                                    \
    static constexpr std::string_view ops[] = {#name, "mul"};      \
    __device__ static float apply(float x, float y) {              \
      return Product::apply(canonicalize(graph::name(F{x})).v, y); \
    }                                                              \
  };
INVAR_ACTIVATION(Silu, silu)
INVAR_ACTIVATION(Gelu, gelu)
INVAR_ACTIVATION(GeluTanh, gelu_tanh)
INVAR_ACTIVATION(Relu, relu)
INVAR_ACTIVATION(Sigmoid, sigmoid)
#undef INVAR_ACTIVATION

bool same_shape(const View& a, const View& b) {
  bool same = a.rank == b.rank && a.dtype == DType::f32 && b.dtype == DType::f32;
  for (int d = 0; same && d < a.rank; ++d) same = a.dim[d] == b.dim[d];
  return same;
}

}  // namespace

bool can_round_products(std::span<const Call* const> calls) {
  const View& out = calls.back()->out[0];
  bool fits = out.rank > 0 && last_dim(out) > 0 && last_dim(out) <= kLongestRow;
  for (const Call* call : calls) {
    fits &= same_shape(call->out[0], out);
    for (const View& in : call->in) fits &= same_shape(in, out);
  }
  return fits;
}

namespace {

template <class Fn>
void enqueue_rounded(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  const Call& mul = *calls.back();
  Rows rows{mul.in[0].as<const float>(), mul.in[1].as<const float>(), last_dim(mul.out[0]),
            row_count(mul.out[0]), false};
  if (calls.size() > 1) {
    if (rows.a != calls[0]->out[0].as<const float>()) rows.b = rows.a;  // the activation is in[1]
    rows.a = calls[0]->in[0].as<const float>();
  }
  rows.packs = rows.k % kQuad == 0 && is_aligned<kQuad>(rows.a) && is_aligned<kQuad>(rows.b);
  launch_rows<Fn>(rows, to, stream);
}

}  // namespace

void enqueue_rounded_products(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  enqueue_rounded<Product>(calls, to, stream);
}

namespace {

template <class Fn>
constexpr GpuKernel kKernel{
    .op = "mul", .isa = INVAR_ISA, .can_round = can_round_products, .enqueue_rounded = enqueue_rounded<Fn>};
const RegisteredRounding registered[] = {{Silu::ops, kKernel<Silu>},
                                         {Gelu::ops, kKernel<Gelu>},
                                         {GeluTanh::ops, kKernel<GeluTanh>},
                                         {Relu::ops, kKernel<Relu>},
                                         {Sigmoid::ops, kKernel<Sigmoid>}};

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
