// wgmma of signed bytes, as attention's kernels for Hopper (compute capability 9.0a) use it.
#pragma once
#include "kernels/cuda/hopper.cuh"
#include "ops/attention/cuda/exact16/tensor_cores.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A thread's stores to shared memory are visible to matrix products that a barrier orders behind
// it.
__device__ inline void publish_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// d = 32 bytes of 64 rows times 32 bytes of 64 rows, plus d unless `first`. The thread of lane i of
// warp w has, of rows 16 w + i / 4 and 8 more, columns 8 j + i % 4 * 2 and the next: d[4 j ... 4 j
// + 3].
#define INVAR_D8(d, i)                                                                        \
  "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), "+r"(d[i + 4]), "+r"(d[i + 5]), \
      "+r"(d[i + 6]), "+r"(d[i + 7])
#define INVAR_D32(d) INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24)
#define INVAR_R32                                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define INVAR_WGMMA(a, b, add)                \
  "{\n.reg .pred add;\nsetp.ne.b32 add, " add \
  ", 0;\n"                                    \
  "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" INVAR_R32 "}, " a ", " b ", add;\n}"

template <bool kFirst>
__device__ __forceinline__ void multiply_add(int32_t (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("%32", "%33", "%34") : INVAR_D32(d) : "l"(a), "l"(b), "n"(kFirst ? 0 : 1));
}
template <bool kFirst>
__device__ __forceinline__ void multiply_add(int32_t (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(INVAR_WGMMA("{%32, %33, %34, %35}", "%36", "%37")
               : INVAR_D32(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kFirst ? 0 : 1));
}

// The sums of a tile of 64 x 64: high by high, mixed, low by low.
struct WidePlaneSums {
  int32_t high[32], mixed[32], low[32];

  // One step of 32 bytes. A is in shared memory or in registers.
  template <bool kFirst, class A>
  __device__ __forceinline__ void add(const A& ah, const A& al, uint64_t bh, uint64_t bl) {
    multiply_add<kFirst>(high, ah, bh);
    multiply_add<kFirst>(mixed, ah, bl);
    multiply_add<kFirst>(low, al, bl);
    multiply_add<false>(mixed, al, bh);
  }
  // Until they have arrived.
  __device__ __forceinline__ void wait() {
    wait_products<0>();
#pragma unroll
    for (int i = 0; i < 32; ++i) asm volatile("" : "+r"(high[i]), "+r"(mixed[i]), "+r"(low[i])::"memory");
  }
  __device__ __forceinline__ float rounded(int i, uint32_t float_half) const {
    return rounded_sum(high[i], mixed[i], low[i], float_half);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
