// Hopper's matrix products of signed bytes (compute capability 9.0a).
#pragma once
#include "kernels/cuda/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// d [64, N] += 32 bytes of 64 rows times 32 bytes of N rows. The thread of lane i of warp w has, of
// rows 16 w + i / 4 and 8 more, columns 8 j + i % 4 * 2 and the next: d[4 j ... 4 j + 3].
#define INVAR_D8(d, i)                                                                        \
  "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), "+r"(d[i + 4]), "+r"(d[i + 5]), \
      "+r"(d[i + 6]), "+r"(d[i + 7])
#define INVAR_WGMMA(columns, registers, a, b) \
  "wgmma.mma_async.sync.aligned.m64n" columns "k32.s32.s8.s8 {" registers "}, " a ", " b ", 1;"
#define INVAR_R8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define INVAR_R16 INVAR_R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define INVAR_R32 INVAR_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define INVAR_R64                                                                                          \
  INVAR_R32                                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define INVAR_R24 INVAR_R16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define INVAR_R40 INVAR_R32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define INVAR_R48 INVAR_R40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define INVAR_R56 INVAR_R48 ", %48, %49, %50, %51, %52, %53, %54, %55"

__device__ inline void multiply_add(int (&d)[8], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("16", INVAR_R8, "%8", "%9") : INVAR_D8(d, 0) : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[16], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("32", INVAR_R16, "%16", "%17") : INVAR_D8(d, 0), INVAR_D8(d, 8) : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("64", INVAR_R32, "%32", "%33")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[24], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("48", INVAR_R24, "%24", "%25")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[40], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("80", INVAR_R40, "%40", "%41")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[48], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("96", INVAR_R48, "%48", "%49")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32),
                 INVAR_D8(d, 40)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[56], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("112", INVAR_R56, "%56", "%57")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32),
                 INVAR_D8(d, 40), INVAR_D8(d, 48)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("128", INVAR_R64, "%64", "%65")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32),
                 INVAR_D8(d, 40), INVAR_D8(d, 48), INVAR_D8(d, 56)
               : "l"(a), "l"(b));
}

// sync_warpgroup(), which tells whether x holds in all threads.
__device__ inline bool all_in_warpgroup(int which, bool x) {
  int all;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n"
      "barrier.cta.red.and.pred p, %2, %3, p;\n"
      "selp.b32 %0, 1, 0, p;\n}"
      : "=r"(all)
      : "r"(static_cast<int>(x)), "r"(which + 1), "n"(kWarpgroup)
      : "memory");
  return all;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
