// What the kernels of attention_exact16 share: the layout of the cache and the numbers of
// spec/attention-exact16.md. The cache of a head consists of blocks of 128 absolute positions: keys
// as two planes of bytes [128][dk], values as two planes [dvr][128], the scales of both, and what
// tensor-core kernels make of them.
#pragma once
#include "num/exact16/quantize.h"
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int32_t kNoIntegers = num::kExact16NoIntegers;
constexpr int32_t kZeroRow = -kNoIntegers;  // the scale of a row of zeros
constexpr int32_t kHiddenKey = 2 * kZeroRow;
// Scales with which no step of the tensor-core kernels over- or underflows. Others are kUnusual;
// blocks with them are computed as exact_result() does.
constexpr int32_t kUsualKeyScale = 40, kUsualValueScale = 60, kUnusual = kNoIntegers / 2;

struct ExactLayout {
  int64_t dk, dvr;  // bytes of a row of keys; rows of a plane of values
  __host__ __device__ explicit ExactLayout(const Geometry& g)
      : dk(attention::up_to(g.d, 32)), dvr(attention::up_to(g.dv, 16)) {}
  __host__ __device__ int64_t key_plane() const { return kBlock * dk; }
  __host__ __device__ int64_t value_plane() const { return kBlock * dvr; }
  __host__ __device__ int64_t scales() const { return 2 * (key_plane() + value_plane()); }
  __host__ __device__ int64_t block() const { return scales() + int64_t{5} * kBlock * 4; }
};
struct ExactCacheBlock {
  int8_t *keys, *values;  // their high planes
  int32_t *key_scales, *value_scales;
  // 2^e of keys, or NaN; e of values, or kUnusual; e << 23.
  float* key_powers;
  int32_t *value_reaches, *value_shifts;
};
// from: where it begins.
__device__ inline ExactCacheBlock exact_cache_block(const ExactLayout& at, int8_t* from) {
  auto* const scales = reinterpret_cast<int32_t*>(from + at.scales());
  return {from,
          from + 2 * at.key_plane(),
          scales,
          scales + kBlock,
          reinterpret_cast<float*>(scales + 2 * kBlock),
          scales + 3 * kBlock,
          scales + 4 * kBlock};
}
// The blocks of a key head of a sequence.
struct ExactCache {
  std::byte* const* pages;
  int8_t* first;
  ExactCache() = default;
  __device__ ExactCache(const AttentionParams& s, const ExactLayout& at, int64_t batch, int64_t kv_head) {
    const SequenceBlocks blocks(s, s.sequences[batch].slot);
    pages = blocks.pages;
    first = reinterpret_cast<int8_t*>(blocks.first.memory) + kv_head * blocks.first.blocks * at.block();
  }
  __device__ ExactCacheBlock block(const ExactLayout& at, int64_t block) const {
    return exact_cache_block(at, in_block(pages, first, block, at.block()));
  }
};
__device__ inline ExactCacheBlock exact_cache_block(const AttentionParams& s, const ExactLayout& at,
                                                    int64_t head, int64_t block) {
  return ExactCache(s, at, head / s.g.kv_heads, head % s.g.kv_heads).block(at, block);
}

// exact16.1; kZeroRow of a row of zeros.
__device__ inline int32_t scale_of_largest(uint32_t largest) {
  return largest ? num::exact16_scale(largest) : kZeroRow;
}
// exact16.2 of a row with the scale e; 0 if it has none.
struct Quantizer {
  float first, second;
  __device__ explicit Quantizer(int32_t e) : first(0), second(0) {
    if (e == kNoIntegers || e == kZeroRow) return;
    const num::Exact16Factors by = num::exact16_factors(e);
    first = by.first, second = by.second;
  }
  __device__ int32_t integer(float x) const { return first == 0 ? 0 : __float2int_rn(x * first * second); }
};
// Four integers as bytes of the high and of the low plane (exact16.2).
struct PlaneBytes {
  uint32_t high, low;
};
__device__ inline PlaneBytes plane_bytes(const int32_t (&q)[4]) {
  PlaneBytes r{0, 0};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    r.high |= (static_cast<uint32_t>((q[i] + 128) >> 8) & 0xff) << 8 * i;
    r.low |= (static_cast<uint32_t>(q[i]) & 0xff) << 8 * i;
  }
  return r;
}
__device__ inline uint32_t largest_of_warp(uint32_t u) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kFullWarp, u);
#else
#pragma unroll
  for (int step = kWarp / 2; step; step /= 2) u = umax(u, __shfl_xor_sync(kFullWarp, u, step));
  return u;
#endif
}
__device__ inline uint32_t magnitude(float x) {
  return __float_as_uint(x) & 0x7fffffff;
}

// 2^e of a row of a query or key; 1 of a row of zeros; NaN if it has no integers or is unusual.
__device__ inline float usual_power(int32_t e) {
  if (e == kZeroRow) return 1.0f;
  return e >= -kUsualKeyScale && e <= kUsualKeyScale ? num::exact16_power(e) : __uint_as_float(0x7fc00000);
}
__device__ inline int32_t usual_reach(int32_t e) {
  if (e == kZeroRow || e == kNoIntegers) return e;
  return e >= -kUsualValueScale && e <= kUsualValueScale ? e : kUnusual;
}

// exact16.4 and exact16.5; kZeroRow among the scales goes with a sum of 0.
__device__ inline F exact_result(int64_t sum, int32_t ea, int32_t eb) {
  if (ea == kNoIntegers || eb == kNoIntegers) return set1(__uint_as_float(0x7fc00000));
  if (sum == 0) return zero();
  const double power = num::exact16_wide_power(ea) * num::exact16_wide_power(eb);
  const double y = static_cast<double>(__ll2float_rn(sum)) * power;
  if (fabs(y) < 0x1p-126) return set1(sum < 0 ? -0.0f : 0.0f);
  return set1(__double2float_rn(y));
}

// attention_exact16.3: 2^-n p, and n + 0x4b400000.
struct ExactWeight {
  float y;
  int32_t power;
  __device__ float p() const {
    return __int_as_float(__float_as_int(y) + static_cast<int32_t>(static_cast<uint32_t>(power) << 23));
  }
  // p 2^22, rounded: the last place of a float at 3 is 2^-22.
  __device__ int32_t fine() const { return __float_as_int(__fadd_rn(p(), 3.0f)) - 0x40400000; }
  __device__ int32_t reach(int32_t value_scale) const { return power - 0x4b400000 + value_scale; }
  // attention_exact16.5: W, where n + e is `behind` less than E.
  __device__ int32_t coarse(int32_t behind) const {
    if (behind > 60) return 0;
    return __float_as_int(__fmaf_rn(y, __int_as_float((127 + 14 - behind) << 23), 0x1.8p23f)) - 0x4b400000;
  }
};
__device__ inline ExactWeight exact_weight(float difference) {
  const float x = fmaxf(difference, -87.0f);
  const float z = __fmaf_rn(x, 0x1.715476p+0f, 0x1.8p23f);
  const float f = __fmaf_rn(x, 0x1.715476p+0f, -__fsub_rn(z, 0x1.8p23f));
  float y = __fmaf_rn(__uint_as_float(0x3c1d0166), f, __uint_as_float(0x3d64fe23));
  y = __fmaf_rn(y, f, __uint_as_float(0x3e7601bc));
  y = __fmaf_rn(y, f, __uint_as_float(0x3f317096));
  return {__fmaf_rn(y, f, 1.0f), __float_as_int(z)};
}
// attention_exact16.4: l_b of the exact sum.
__device__ inline F exact_block_sum(int32_t sum, float mb) {
  return set1(mb - mb == 0 ? __fmul_rn(__int2float_rn(sum), 0x1p-22f) : __uint_as_float(0x7fc00000));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
