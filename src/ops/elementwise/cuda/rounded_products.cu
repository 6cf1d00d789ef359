// Rows of mul, and of an activation times another operand, that are rounded where they are made:
// one kernel reads the operands and writes integers of 16 bits.

#include "kernels/call.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/vectorized_loop.h"
#include "kernels/fusion/rounding_kernels.h"
#include "ops/elementwise/cuda/quick_silu.cuh"
#include "ops/elementwise/cuda/rounded_products.h"
#include "ops/elementwise/graphs/activations.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kMostWarps = 16, kQuad = 4, kMostClusters = 8;
constexpr int64_t kLongestRow = 32768;

// The largest of all blocks of a cluster, for one row after another. Blocks write it into the
// memory of each other, for rows in turn into one of two places: a block may be a row ahead.
class ClusterLargest {
 public:
  explicit __device__ ClusterLargest(int blocks) : blocks_(blocks) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (blocks_ == 1) return;
    if (threadIdx.x == 0) {
      init_barrier(shared_address(&exchange_[0].full), 1);
      init_barrier(shared_address(&exchange_[1].full), 1);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
  }
  // Before the first row: the other blocks have started.
  __device__ void meet() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (blocks_ > 1) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
  }
  __device__ uint32_t of(uint32_t largest) {
    largest = largest_in_block(largest);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (blocks_ > 1) {
      Exchange& now = exchange_[turn_ & 1];
      const uint32_t full = shared_address(&now.full);
      if (threadIdx.x == 0) expect_bytes(full, blocks_ * sizeof(uint32_t));
      if (threadIdx.x < blocks_)
        asm volatile(
            "{\n.reg .b32 to, barrier;\n"
            "mapa.shared::cluster.u32 to, %0, %3;\n"
            "mapa.shared::cluster.u32 barrier, %1, %3;\n"
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], %2, [barrier];\n}" ::"r"(
                shared_address(&now.of_block[blockIdx.x])),
            "r"(full), "r"(largest), "r"(threadIdx.x)
            : "memory");
      wait_barrier(full, turn_ >> 1 & 1);
      ++turn_;
#pragma unroll
      for (int b = 0; b < kMostClusters; ++b)
        if (b < blocks_) largest = max(largest, now.of_block[b]);
      return largest;
    }
#endif
    __syncthreads();
    return largest;
  }

 private:
  struct Exchange {
    uint64_t full;  // an mbarrier
    uint32_t of_block[kMostClusters];
  };
  Exchange* const exchange_ = exchange();
  int blocks_, turn_ = 0;

  static __device__ Exchange* exchange() {
    __shared__ Exchange both[2];
    return both;
  }
};

struct Rows {
  const float *a, *b;
  int64_t k, count;
  bool packs;  // quads of elements are aligned
};
using Quad = Pack<float, kQuad>;
// Elements i ... i + 3 of a row of k; zeros behind its end.
template <bool kPacks>
__device__ Quad load_quad(const float* row, int i, int k) {
  Quad x{};
  if constexpr (kPacks) {
    if (i < k) x = load_pack<kQuad>(row + i);
  } else {
    for (int j = 0; j < kQuad; ++j)
      if (i + j < k) x.v[j] = row[i + j];
  }
  return x;
}
// The larger of `a` and |x|, NaN if one is.
__device__ float larger_magnitude(float a, float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(fabsf(x)));
  return a;
#else
  return __uint_as_float(largest_of(__float_as_uint(a), x));
#endif
}

// What multiplies the second operand: the first, or its activation under the store rule
// (formats.5). Of zeros both are finite, so that products behind the end of a row are zero.
struct Product {
  using Quick = Product;
  __device__ bool operator()(float x, float& y) const { return y = x, true; }
};
#define INVAR_ACTIVATION(Name, name)                          \
  struct Name {                                               \
    static constexpr std::string_view ops[] = {#name, "mul"}; \
    using Quick = Name;                                       \
    __device__ bool operator()(float x, float& y) const {     \
      return y = canonicalize(graph::name(F{x})).v, true;     \
    }                                                         \
  };
INVAR_ACTIVATION(GeluTanh, gelu_tanh)
INVAR_ACTIVATION(Relu, relu)
INVAR_ACTIVATION(Sigmoid, sigmoid)
#undef INVAR_ACTIVATION
// Quick: a graph without branches and whether its result is certain; uncertain(): for the few
// others.
struct Silu {
  static constexpr std::string_view ops[] = {"silu", "mul"};
  using Quick = QuickSilu;
  static __device__ __noinline__ float uncertain(float x) { return canonicalize(graph::silu(F{x})).v; }
};
struct QuickGelu {
  __device__ bool operator()(float x, float& y) const {
    const auto v = graph::gelu_if_certain(F{x});
    y = v.y.v;
    return v.sure.v;
  }
};
struct Gelu {
  static constexpr std::string_view ops[] = {"gelu", "mul"};
  using Quick = QuickGelu;
  static __device__ __noinline__ float uncertain(float x) { return canonicalize(graph::gelu(F{x})).v; }
};
// The products, not yet under the store rule.
template <class Fn>
__device__ Quad products(const typename Fn::Quick& quick, const Quad& x, const Quad& y) {
  Quad result;
  bool sure[kQuad];
#pragma unroll
  for (int j = 0; j < kQuad; ++j) sure[j] = quick(x.v[j], result.v[j]);
  if constexpr (requires { Fn::uncertain; })
    if (!(sure[0] & sure[1] & sure[2] & sure[3])) {
#pragma unroll
      for (int j = 0; j < kQuad; ++j)
        if (!sure[j]) result.v[j] = Fn::uncertain(x.v[j]);
    }
#pragma unroll
  for (int j = 0; j < kQuad; ++j) result.v[j] *= y.v[j];
  return result;
}

// Where a block keeps its products until their scale is known. kRegisters: each thread has one
// quad, so that a block needs little memory and can start while a large kernel ahead of it still
// runs. kNowhere: its shared memory is too small; they are made twice.
enum class Keep { kRegisters, kShared, kNowhere };

// A cluster of blocks for each row, grid.x in all, a warp for chunks of kRoundedK elements.
template <class Fn, bool kPacks>
__global__ void __launch_bounds__(kMostWarps* kWarp, 2)
    rounded_rows_kernel(Rows from, RoundedRows to, Keep keep) {
  extern __shared__ float4 made[];
  trigger_next_grid();
  const int blocks = gridDim.x, part = blockIdx.x;
  ClusterLargest cluster(blocks);
  const typename Fn::Quick quick;
  const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp;
  const int chunks = static_cast<int>(to.chunks), each = (chunks + blocks - 1) / blocks;
  const int k = static_cast<int>(from.k), end = min(part * each + each, chunks) * kRoundedK;
  const int first = (part * each + warp) * kRoundedK + threadIdx.x % kWarp * kQuad, step = warps * kRoundedK;
  auto* const own = reinterpret_cast<Quad*>(made) + threadIdx.x;
  auto inside = [&](int i) { return i < end ? i : k; };  // else nothing is loaded
  cluster.meet();
  wait_for_previous_grid();
  for (int64_t r = blockIdx.y; r < from.count; r += gridDim.y) {
    const float *a = from.a + r * k, *b = from.b + r * k;
    float largest = 0;
    auto x = load_quad<kPacks>(a, inside(first), k), y = load_quad<kPacks>(b, inside(first), k);
    Quad *to_own = own, last;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x) {
      const int next = inside(i + step);
      const auto next_x = load_quad<kPacks>(a, next, k), next_y = load_quad<kPacks>(b, next, k);
      last = products<Fn>(quick, x, y);
      for (const float one : last.v) largest = larger_magnitude(largest, one);
      if (keep == Keep::kShared) *to_own = last;
      x = next_x, y = next_y;
    }
    // The store rule: subnormal products are zero. They matter in rows of tiny ones only.
    uint32_t bits = cluster.of(__float_as_uint(largest));
    if (bits < 0x00800000) bits = 0;
    const int32_t e = num::exact16_scale(bits);
    const bool tiny = e < -100;
    const RoundedRow out(to, r, e);
    to_own = own;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x) {
      auto result = last;
      if (keep == Keep::kShared) result = *to_own;
      if (keep == Keep::kNowhere)
        result = products<Fn>(quick, load_quad<kPacks>(a, i, k), load_quad<kPacks>(b, i, k));
      if (tiny)
        for (float& one : result.v) one = fabsf(one) < 0x1p-126f ? 0 : one;
      out.store<kQuad>(i, result.v);
    }
    if (part == 0 && threadIdx.x == 0) to.scales[r] = e;
    if (part == 0 && r == 0) clear_scales(to, from.count, threadIdx.x, blockDim.x);
  }
}

// A row takes several blocks if the blocks of all rows run at once.
template <class Fn, bool kPacks>
void launch_packs(const Rows& from, const RoundedRows& to, Stream stream) {
  const int64_t chunks = ceil_div(from.k, kRoundedK), at_once = multiprocessors();
  int blocks = supports_dependent_launch() ? kMostClusters : 1;
  while (blocks > 1 && (blocks * from.count > at_once || blocks > chunks)) blocks /= 2;
  const int64_t each = ceil_div(chunks, blocks), turns = ceil_div(each, kMostWarps);
  const int64_t warps = ceil_div(each, turns);
  const auto bytes = static_cast<size_t>(warps * turns * kRoundedK) * sizeof(float);
  const bool fits = bytes <= static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const Keep keep = turns == 1 ? Keep::kRegisters : fits ? Keep::kShared : Keep::kNowhere;
  constexpr int64_t kMostRows = 65535;  // of a grid
  const dim3 grid(static_cast<unsigned>(blocks),
                  static_cast<unsigned>(from.count < kMostRows ? from.count : kMostRows));
  const dim3 threads(static_cast<unsigned>(warps * kWarp));
  const size_t shared = keep == Keep::kShared ? bytes : 0;
  if (blocks > 1)
    launch_clusters(rounded_rows_kernel<Fn, kPacks>, static_cast<unsigned>(blocks), grid, threads, shared,
                    stream, from, to, keep);
  else
    launch_dependent(rounded_rows_kernel<Fn, kPacks>, grid, threads, shared, stream, from, to, keep);
}
template <class Fn>
void launch_rows(const Rows& from, const RoundedRows& to, Stream stream) {
  if (from.packs)
    launch_packs<Fn, true>(from, to, stream);
  else
    launch_packs<Fn, false>(from, to, stream);
}

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
