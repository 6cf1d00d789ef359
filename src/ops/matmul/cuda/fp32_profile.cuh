// Profile fp32-1 (spec/contraction.md) for the tiles of gemm.cuh.
#pragma once
#include "num/contract/lanes.h"
#include "ops/matmul/cuda/gemm.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Sums of a thread, added to or kept in memory that only it reads, sixteen bytes at a time. Neighbours change places there, so
// that a sum and what it is multiplied by, which comes sixteen bytes at a time as well, lie in two banks of registers.
template <class T, int n>
__device__ void take_sums(const float4* at, F (&x)[n]) {
  INVAR_UNROLL
  for (int i = 0; i < n; i += 4) {
    const float4 kept = at[i / 4 * T::kThreads];
    x[i + 1] = add(set1(kept.x), x[i + 1]), x[i] = add(set1(kept.y), x[i]);
    x[i + 3] = add(set1(kept.z), x[i + 3]), x[i + 2] = add(set1(kept.w), x[i + 2]);
  }
}
template <class T, int n>
__device__ void keep_sums(float4* at, const F (&x)[n]) {
  INVAR_UNROLL
  for (int i = 0; i < n; i += 4) at[i / 4 * T::kThreads] = {x[i + 1].v, x[i].v, x[i + 3].v, x[i + 2].v};
}
template <int n>
__device__ void clear(F (&x)[n]) {
  INVAR_UNROLL
  for (int i = 0; i < n; ++i) x[i] = zero();
}
// One k: a column of a times a row of b, there and back: each product shares a register with the one before, so that two
// others are read for it, which is what a cycle has ports for.
template <int kTall, int kWide>
__device__ void outer_product(const float (&a)[kTall], const float (&b)[kWide], F (&sums)[kTall * kWide]) {
  INVAR_UNROLL
  for (int i = 0; i < kTall * kWide; ++i) {
    const int down = i / kWide, r = kTall - 1 - down, c = down % 2 ? kWide - 1 - i % kWide : i % kWide;
    sums[r * kWide + c] = fma(set1(a[r]), set1(b[c]), sums[r * kWide + c]);
  }
}

// Chains of 256 (contraction.2), the sum of a segment, and the levels of the tree where a block goes through all
// segments: they lie in memory that only this thread reads.
template <int kTall, int kWide>
struct Fp32Sums {
  static constexpr int64_t kChain = num::kChain;
  static constexpr int kSums = kTall * kWide;
  using Word = float;
  using Sum = F;
  F chain[kSums], segment[kSums];
  __device__ void open() { clear(chain), clear(segment); }
  __device__ void add_products(const float (&a)[kTall], const float (&b)[kWide]) {
    outer_product(a, b, chain);
  }
  // The chain that began at k is complete.
  template <class T>
  __device__ void close(int k, const Job& job, const Levels<T>& levels) {
    INVAR_UNROLL
    for (int i = 0; i < kSums; ++i) segment[i] = add(segment[i], chain[i]);  // contraction.3
    clear(chain);
    if (job.parts > 1) return;
    const num::BlockPlace place =
        num::block_place(k / static_cast<int>(num::kChain), static_cast<int>(job.depth));
    if (!place.closes) return;
    climb(
        place.segment, place.last, [&](int level) { take_sums<T>(levels.at(level), segment); },
        [&](int level) { keep_sums<T>(levels.at(level), segment); });
    if (!place.last) clear(segment);
  }
  __device__ F result(int r, int c) const { return segment[r * kWide + c]; }
};

// The same where registers hold the chains alone: the segment waits where the levels do, below them. One part only.
template <int kTall, int kWide>
struct Fp32FarSums {
  static constexpr int64_t kChain = num::kChain;
  static constexpr int kSums = kTall * kWide;
  using Word = float;
  using Sum = F;
  F chain[kSums];
  __device__ void open() { clear(chain); }
  __device__ void add_products(const float (&a)[kTall], const float (&b)[kWide]) {
    outer_product(a, b, chain);
  }
  template <class T>
  __device__ void close(int k, const Job& job, const Levels<T>& levels) {
    const num::BlockPlace place =
        num::block_place(k / static_cast<int>(num::kChain), static_cast<int>(job.depth));
    if (place.opens) {
      INVAR_UNROLL
      for (int i = 0; i < kSums; ++i) chain[i] = add(zero(), chain[i]);  // contraction.3
    } else {
      take_sums<T>(levels.at(0), chain);
    }
    if (place.closes)
      climb(
          place.segment, place.last, [&](int level) { take_sums<T>(levels.at(1 + level), chain); },
          [&](int level) { keep_sums<T>(levels.at(1 + level), chain); });
    else
      keep_sums<T>(levels.at(0), chain);
    if (!place.last) clear(chain);
  }
  __device__ F result(int r, int c) const { return chain[r * kWide + c]; }
};
template <class T>
using Fp32SumsOf = std::conditional_t<T::kKept == num::kSumsKept, Fp32FarSums<T::kTall, T::kWide>,
                                      Fp32Sums<T::kTall, T::kWide>>;

// Outputs of f32: stored, or kept as the sums of parts, [parts][batches][M][N].
struct F32Out {
  float* to;
  float* parts;
  bool wide;  // rows of four are aligned to 16 bytes
  using Element = float;
  __device__ float* matrix(const Job& job, int64_t part, int64_t batch) const {
    return (job.parts > 1 ? parts + part * job.s.batches * job.s.m * job.s.n : to) +
           batch * job.s.m * job.s.n;
  }
  // Four neighbours of row i from column j on, those below N.
  __device__ void store(const Job& job, float* at, int64_t, int64_t j, const F (&y)[4]) const {
    float x[4];
    INVAR_UNROLL
    for (int e = 0; e < 4; ++e) x[e] = job.parts > 1 ? y[e].v : num::canon(y[e].v);
    if (wide) {
      *reinterpret_cast<float4*>(at) = {x[0], x[1], x[2], x[3]};
    } else {
      INVAR_UNROLL
      for (int e = 0; e < 4; ++e)
        if (j + e < job.s.n) at[e] = x[e];
    }
  }
};

// The sums of parts joined, for each product. Parts are segments or, where `each_chain`, chains.
template <int most>
struct Joins {
  int count;
  int64_t n[most];  // outputs
  const float* parts[most];
  float* out[most];
};
template <class B, int most>
void enqueue_join(const Tiled<B, F32Out, most>& products, bool each_chain, Stream stream) {
  Joins<most> all{products.count, {}, {}, {}};
  int64_t outputs = 0;
  for (int p = 0; p < products.count; ++p) {
    const Shape& s = products.job[p].s;
    all.n[p] = s.batches * s.m * s.n, all.parts[p] = products.out[p].parts, all.out[p] = products.out[p].to;
    outputs += all.n[p];
  }
  const int64_t k = products.job[0].s.k;
  each(stream, outputs, [=] __device__(int64_t i) {
    int p = 0;
    for (; p + 1 < all.count && i >= all.n[p]; ++p) i -= all.n[p];
    const int64_t n = all.n[p];
    const float* const parts = all.parts[p];
    float segment[num::kSegments];
    INVAR_UNROLL
    for (int s = 0; s < num::kSegments; ++s) {
      const num::Range blocks =
          each_chain ? num::segment_blocks(s, k) : num::Range{s, s < num::segments_in_use(k) ? s + 1 : s};
      segment[s] = num::join_chains(blocks, [&](int64_t b) { return parts[b * n + i]; });
    }
    all.out[p][i] = num::canon(num::join_segments(segment));
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
