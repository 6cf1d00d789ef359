// Profile fp32-1 (spec/contraction.md) for the tiles of gemm.cuh.
#pragma once
#include "num/contract/lanes.h"
#include "ops/matmul/gemm.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Chains of 256 (contraction.2), the sum of a segment, and the levels of the tree where a block goes through all
// segments: they lie in memory that only this thread reads.
template <int kTall, int kWide>
struct Fp32Sums {
  static constexpr int64_t kChain = num::kChain;
  static constexpr int kSums = kTall * kWide;
  using Word = float;
  using Sum = F;
  F chain[kSums], segment[kSums];
  __device__ void open() {
    INVAR_UNROLL
    for (int i = 0; i < kSums; ++i) chain[i] = zero(), segment[i] = zero();
  }
  // One k: a column of a times a row of b, there and back: each product shares a register with the one before, so that two
  // others are read for it, which is what a cycle has ports for.
  __device__ void add_products(const float (&a)[kTall], const float (&b)[kWide]) {
    INVAR_UNROLL
    for (int i = 0; i < kSums; ++i) {
      const int down = i / kWide, r = kTall - 1 - down, c = down % 2 ? kWide - 1 - i % kWide : i % kWide;
      chain[r * kWide + c] = fma(set1(a[r]), set1(b[c]), chain[r * kWide + c]);
    }
  }
  // The chain that began at k is complete.
  template <class T>
  __device__ void close(int k, const Job& job, const Levels<T>& levels) {
    INVAR_UNROLL
    for (int i = 0; i < kSums; ++i) {
      segment[i] = add(segment[i], chain[i]);  // contraction.3
      chain[i] = zero();
    }
    if (job.parts > 1) return;
    const num::BlockPlace place =
        num::block_place(k / static_cast<int>(num::kChain), static_cast<int>(job.depth));
    if (!place.closes) return;
    climb(
        place.segment, place.last,
        [&](int level) {
          const float4* at = levels.at(level);
          INVAR_UNROLL
          for (int i = 0; i < kSums; i += 4) {
            const float4 x = at[i / 4 * T::kThreads];
            segment[i] = add(set1(x.x), segment[i]), segment[i + 1] = add(set1(x.y), segment[i + 1]);
            segment[i + 2] = add(set1(x.z), segment[i + 2]), segment[i + 3] = add(set1(x.w), segment[i + 3]);
          }
        },
        [&](int level) {
          float4* at = levels.at(level);
          INVAR_UNROLL
          for (int i = 0; i < kSums; i += 4)
            at[i / 4 * T::kThreads] = {segment[i].v, segment[i + 1].v, segment[i + 2].v, segment[i + 3].v};
        });
    if (place.last) return;
    INVAR_UNROLL
    for (int i = 0; i < kSums; ++i) segment[i] = zero();
  }
  __device__ F result(int r, int c) const { return segment[r * kWide + c]; }
};

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

// The sums of parts joined: out[i] of n outputs. Parts are segments or, where `each_chain`, chains.
inline void enqueue_join(const float* parts, int64_t n, int64_t k, bool each_chain, float* out,
                         Stream stream) {
  each(stream, n, [=] __device__(int64_t i) {
    float segment[num::kSegments];
    INVAR_UNROLL
    for (int s = 0; s < num::kSegments; ++s) {
      const num::Range blocks =
          each_chain ? num::segment_blocks(s, k) : num::Range{s, s < num::segments_in_use(k) ? s + 1 : s};
      segment[s] = num::join_chains(blocks, [&](int64_t b) { return parts[b * n + i]; });
    }
    out[i] = num::canon(num::join_segments(segment));
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
