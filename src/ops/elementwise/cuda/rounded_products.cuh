// What kernels share that make rows of products and round them: an activation times another
// operand, and the largest element of a row that a cluster of blocks has.
#pragma once
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/elementwise/cuda/quick_silu.cuh"
#include "ops/elementwise/graphs/activations.h"

namespace invar::ops::INVAR_ISA_NS {
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

// The blocks of a cluster for each of so many rows of k elements: several if those of all rows run
// at once. The warps of a block, and how often each of them has a chunk.
struct RowBlocks {
  int64_t blocks, warps, turns;
  size_t bytes() const { return static_cast<size_t>(warps * turns * kRoundedK) * sizeof(float); }
};
inline RowBlocks row_blocks(int64_t k, int64_t rows) {
  const int64_t chunks = ceil_div(k, kRoundedK), at_once = multiprocessors();
  int64_t blocks = supports_dependent_launch() ? kMostClusters : 1;
  while (blocks > 1 && (blocks * rows > at_once || blocks > chunks)) blocks /= 2;
  const int64_t each = ceil_div(chunks, blocks), turns = ceil_div(each, kMostWarps);
  return {blocks, ceil_div(each, turns), turns};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
