// What the tensor-core kernels of attention_exact16 share: products of 16 rows by integer tensor
// cores (mma.sync, sm_80), and exact sums of three planes as floats.
#pragma once
#include "kernels/cuda/hopper.cuh"
#include "ops/attention/cuda/exact16/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kMmaRows = 16, kMmaKeys = 32;  // rows of a warp; keys that one product contracts over
constexpr int kTileBytes = 128;              // of a row of shared memory, at least

// Four 8 x 16 matrices of bytes, whose rows begin at the addresses of 8 lanes each.
__device__ inline void load_matrices(uint32_t (&x)[4], uint32_t address) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address));
#endif
}
// c += a b: 16 x 32 by 32 x 8 bytes. kWeights: a is unsigned.
template <bool kWeights>
__device__ inline void multiply_add(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kWeights)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
// V rounded to 24 bits: 2^16 x + y with both parts exact, and one fma. 256 mixed + low is below
// 2^31, |x| below 2^22, for 256 products.
// float_half: 0x4b00, the upper half of 2^23. A register for it saves an instruction.
__device__ __forceinline__ float rounded_sum(int32_t high, int32_t mixed, int32_t low,
                                             uint32_t float_half = 0x4b00) {
  const int32_t rest = 256 * mixed + low;
  const float x = __int2float_rn(high + (rest >> 16));
  const float y = __uint_as_float(__byte_perm(static_cast<uint32_t>(rest), float_half, 0x5410)) - 0x1p23f;
  return __fmaf_rn(x, 0x1p16f, y);
}
// The sums of a tile of 16 x 8: high by high, mixed, low by low.
struct PlaneSums {
  int32_t high[4] = {}, mixed[4] = {}, low[4] = {};
  template <bool kWeights>
  __device__ __forceinline__ void add(const uint32_t (&ah)[4], const uint32_t (&al)[4], uint32_t bh0,
                                      uint32_t bh1, uint32_t bl0, uint32_t bl1) {
    multiply_add<kWeights>(high, ah, bh0, bh1);
    multiply_add<kWeights>(mixed, ah, bl0, bl1);
    multiply_add<kWeights>(low, al, bl0, bl1);
    multiply_add<kWeights>(mixed, al, bh0, bh1);
  }
  __device__ __forceinline__ float rounded(int i) const { return rounded_sum(high[i], mixed[i], low[i]); }
  __device__ __forceinline__ int64_t exact(int i) const {
    return int64_t{65536} * high[i] + 256 * mixed[i] + low[i];
  }
};

// Where a chunk of 16 bytes of a row of shared memory lies: 8 rows of a matrix are in 8 banks of 16
// bytes.
__device__ inline uint32_t swizzled(uint32_t chunk, uint32_t row) {
  return (chunk ^ (row & 7)) * 16;
}
// The low bits of a key that tell the 8 keys of a matrix apart: see key_of().
__device__ inline uint32_t key_phase(int key) {
  return (key & 1) | ((key >> 1) & 6);
}
// Column c of tile i of a run of 32 keys is this one. So the scores of a thread, as bytes, are its
// part of the left operand of the next product.
__device__ inline int key_of(int tile, int column) {
  return tile / 2 * 16 + column / 2 * 4 + tile % 2 * 2 + column % 2;
}

// A chunk of 16 bytes from global to shared memory, asynchronously.
__device__ inline void copy_async(uint32_t to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#endif
}
__device__ inline void end_copy_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until at most kPending groups of this thread's copies are under way.
template <int kPending>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}
// A barrier of the block, at which its warps may stand at different places of the code.
__device__ inline void wait_for_block() {
  asm volatile("bar.sync 0;" ::: "memory");
}

// PlaneBytes of weights, whose low plane is unsigned: of the bits of floats that end in them.
__device__ inline PlaneBytes weight_bytes(const uint32_t (&w)[4]) {
  const uint32_t x = __byte_perm(w[0], w[1], 0x5140), y = __byte_perm(w[2], w[3], 0x5140);
  return {__byte_perm(x, y, 0x7632), __byte_perm(x, y, 0x5410)};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
