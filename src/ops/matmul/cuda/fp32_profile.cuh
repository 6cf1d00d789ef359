// Profile fp32-1 (spec/contraction.md) for the tiles of gemm.cuh: chains, segments, tree, epilogue.
#pragma once
#include "num/contract/lanes.h"
#include "ops/matmul/cuda/gemm.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Adds or stores a thread's sums in memory that only it reads, sixteen bytes at a time. Neighbours
// are swapped there, so that a sum and its factor, which also comes sixteen bytes at a time, are in
// different register banks.
template <class T, int n>
__device__ void add_kept_sums(const float4* at, F (&x)[n]) {
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
// One k: a column of a times a row of b, in serpentine order. Each product shares a register with
// the one before, so it reads two others, for which a cycle has the ports.
template <int kThreadRows, int kThreadColumns>
__device__ void outer_product(const float (&a)[kThreadRows], const float (&b)[kThreadColumns],
                              F (&sums)[kThreadRows * kThreadColumns]) {
  INVAR_UNROLL
  for (int i = 0; i < kThreadRows * kThreadColumns; ++i) {
    const int down = i / kThreadColumns, r = kThreadRows - 1 - down,
              c = down % 2 ? kThreadColumns - 1 - i % kThreadColumns : i % kThreadColumns;
    sums[r * kThreadColumns + c] = fma(set1(a[r]), set1(b[c]), sums[r * kThreadColumns + c]);
  }
}

// Chains of 256 (contraction.2) and the sum of a segment, in registers. The levels of the tree,
// which a block needs if it goes through all segments, are in memory (SumLevels).
template <int kThreadRows, int kThreadColumns>
struct Fp32Sums {
  static constexpr int64_t kChain = num::kChain;
  static constexpr int kSums = kThreadRows * kThreadColumns;
  using Word = float;
  using Sum = F;
  F chain[kSums], segment[kSums];
  __device__ void open() { clear(chain), clear(segment); }
  __device__ void add_products(const float (&a)[kThreadRows], const float (&b)[kThreadColumns]) {
    outer_product(a, b, chain);
  }
  // The chain that began at k is complete.
  template <class T>
  __device__ void close(int k, const GemmProblem& job, const SumLevels<T>& levels) {
    INVAR_UNROLL
    for (int i = 0; i < kSums; ++i) segment[i] = add(segment[i], chain[i]);  // contraction.3
    clear(chain);
    if (job.splits > 1) return;
    const num::BlockPosition position =
        num::block_position(k / static_cast<int>(num::kChain), static_cast<int>(job.depth));
    if (!position.closes) return;
    climb(
        position.segment, position.last, [&](int level) { add_kept_sums<T>(levels.at(level), segment); },
        [&](int level) { keep_sums<T>(levels.at(level), segment); });
    if (!position.last) clear(segment);
  }
  __device__ F result(int r, int c) const { return segment[r * kThreadColumns + c]; }
};

// The same with the chains alone in registers: the sum of the segment is below the levels in
// memory. K is not split.
template <int kThreadRows, int kThreadColumns>
struct Fp32MemorySums {
  static constexpr int64_t kChain = num::kChain;
  static constexpr int kSums = kThreadRows * kThreadColumns;
  using Word = float;
  using Sum = F;
  F chain[kSums];
  __device__ void open() { clear(chain); }
  __device__ void add_products(const float (&a)[kThreadRows], const float (&b)[kThreadColumns]) {
    outer_product(a, b, chain);
  }
  template <class T>
  __device__ void close(int k, const GemmProblem& job, const SumLevels<T>& levels) {
    const num::BlockPosition position =
        num::block_position(k / static_cast<int>(num::kChain), static_cast<int>(job.depth));
    if (position.opens) {
      INVAR_UNROLL
      for (int i = 0; i < kSums; ++i) chain[i] = add(zero(), chain[i]);  // contraction.3
    } else {
      add_kept_sums<T>(levels.at(0), chain);
    }
    if (position.closes)
      climb(
          position.segment, position.last, [&](int level) { add_kept_sums<T>(levels.at(1 + level), chain); },
          [&](int level) { keep_sums<T>(levels.at(1 + level), chain); });
    else
      keep_sums<T>(levels.at(0), chain);
    if (!position.last) clear(chain);
  }
  __device__ F result(int r, int c) const { return chain[r * kThreadColumns + c]; }
};
template <class T>
using Fp32SumsOf =
    std::conditional_t<T::kKept == num::kSumsKept, Fp32MemorySums<T::kThreadRows, T::kThreadColumns>,
                       Fp32Sums<T::kThreadRows, T::kThreadColumns>>;

// The f32 epilogue: stores results, or, if K is split, the sums of splits: [splits][batches][M][N].
struct F32Out {
  float* to;
  float* splits;
  bool aligned;  // rows of four are aligned to 16 bytes
  using Element = float;
  __device__ float* matrix(const GemmProblem& job, int64_t split, int64_t batch) const {
    return (job.splits > 1 ? splits + split * job.s.batches * job.s.m * job.s.n : to) +
           batch * job.s.m * job.s.n;
  }
  // Four neighbours of row i from column j on, those below N.
  __device__ void store(const GemmProblem& job, float* at, int64_t, int64_t j, const F (&y)[4]) const {
    float x[4];
    INVAR_UNROLL
    for (int e = 0; e < 4; ++e) x[e] = job.splits > 1 ? y[e].v : num::canonicalize(y[e].v);
    if (aligned) {
      *reinterpret_cast<float4*>(at) = {x[0], x[1], x[2], x[3]};
    } else {
      INVAR_UNROLL
      for (int e = 0; e < 4; ++e)
        if (j + e < job.s.n) at[e] = x[e];
    }
  }
};

// Sums the splits of each product. Splits are segments, or chains if splits_are_chains.
template <int most>
struct SplitKOutputs {
  int count;
  int64_t n[most];  // outputs
  const float* splits[most];
  float* out[most];
};
template <class B, int most>
void enqueue_split_k_sum(const GroupedGemm<B, F32Out, most>& products, bool splits_are_chains,
                         Stream stream) {
  SplitKOutputs<most> all{products.count, {}, {}, {}};
  int64_t outputs = 0;
  for (int p = 0; p < products.count; ++p) {
    const Shape& s = products.problem[p].s;
    all.n[p] = s.batches * s.m * s.n, all.splits[p] = products.out[p].splits, all.out[p] = products.out[p].to;
    outputs += all.n[p];
  }
  const int64_t k = products.problem[0].s.k;
  launch_for_each(stream, outputs, [=] __device__(int64_t i) {
    int p = 0;
    for (; p + 1 < all.count && i >= all.n[p]; ++p) i -= all.n[p];
    const int64_t n = all.n[p];
    const float* const splits = all.splits[p];
    float segment[num::kSegments];
    INVAR_UNROLL
    for (int s = 0; s < num::kSegments; ++s) {
      const num::Range blocks = splits_are_chains ? num::segment_blocks(s, k)
                                                  : num::Range{s, s < num::segments_in_use(k) ? s + 1 : s};
      segment[s] = num::join_chains(blocks, [&](int64_t b) { return splits[b * n + i]; });
    }
    all.out[p][i] = num::canonicalize(num::join_segments(segment));
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
