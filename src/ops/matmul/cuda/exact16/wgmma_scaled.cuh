// wgmma of bytes that may begin a sum (accumulate = 0: d is what was multiplied alone), with the
// first operand in shared memory or in registers.
#pragma once
#include "ops/matmul/cuda/exact16/wgmma.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

#define INVAR_WGMMA_SUM(columns, types, registers, a, b, accumulate) \
  "{\n.reg .pred adds;\nsetp.ne.b32 adds, " accumulate               \
  ", 0;\n"                                                           \
  "wgmma.mma_async.sync.aligned.m64n" columns "k32.s32." types " {" registers "}, " a ", " b ", adds;\n}"
#define INVAR_R128                                                                                           \
  INVAR_R64                                                                                                  \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "   \
  "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, " \
  "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "   \
  "%121, %122, %123, %124, %125, %126, %127"
#define INVAR_D16(d, i) INVAR_D8(d, i), INVAR_D8(d, i + 8)
#define INVAR_D32(d, i) INVAR_D16(d, i), INVAR_D16(d, i + 16)
#define INVAR_D64(d, i) INVAR_D32(d, i), INVAR_D32(d, i + 32)
#define INVAR_D128(d, i) INVAR_D64(d, i), INVAR_D64(d, i + 64)

// Both operands in shared memory; then the first one in registers: of rows i / 4 and 8 more of warp
// w's 16, bytes i % 4 * 4 to + 3, and the same 16 bytes behind.
#define INVAR_WGMMA_SUMS(size, columns, registers, results, n0, n1, n2, n3, n4, n5)                         \
  template <bool kUnsigned = false>                                                                         \
  __device__ inline void multiply(int(&d)[size], uint64_t a, uint64_t b, int accumulate) {                  \
    if constexpr (kUnsigned)                                                                                \
      asm volatile(INVAR_WGMMA_SUM(columns, "u8.s8", registers, n0, n1, n2)                                 \
                   : results                                                                                \
                   : "l"(a), "l"(b), "r"(accumulate));                                                      \
    else                                                                                                    \
      asm volatile(INVAR_WGMMA_SUM(columns, "s8.s8", registers, n0, n1, n2)                                 \
                   : results                                                                                \
                   : "l"(a), "l"(b), "r"(accumulate));                                                      \
  }                                                                                                         \
  template <bool kUnsigned = false>                                                                         \
  __device__ inline void multiply(int(&d)[size], const uint32_t(&a)[4], uint64_t b, int accumulate) {       \
    if constexpr (kUnsigned)                                                                                \
      asm volatile(INVAR_WGMMA_SUM(columns, "u8.s8", registers, "{" n0 ", " n1 ", " n2 ", " n3 "}", n4, n5) \
                   : results                                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                  \
    else                                                                                                    \
      asm volatile(INVAR_WGMMA_SUM(columns, "s8.s8", registers, "{" n0 ", " n1 ", " n2 ", " n3 "}", n4, n5) \
                   : results                                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                  \
  }
INVAR_WGMMA_SUMS(8, "16", INVAR_R8, INVAR_D8(d, 0), "%8", "%9", "%10", "%11", "%12", "%13")
INVAR_WGMMA_SUMS(16, "32", INVAR_R16, INVAR_D16(d, 0), "%16", "%17", "%18", "%19", "%20", "%21")
INVAR_WGMMA_SUMS(32, "64", INVAR_R32, INVAR_D32(d, 0), "%32", "%33", "%34", "%35", "%36", "%37")
INVAR_WGMMA_SUMS(64, "128", INVAR_R64, INVAR_D64(d, 0), "%64", "%65", "%66", "%67", "%68", "%69")
INVAR_WGMMA_SUMS(128, "256", INVAR_R128, INVAR_D128(d, 0), "%128", "%129", "%130", "%131", "%132", "%133")
#undef INVAR_WGMMA_SUMS

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
