// The product of few rows (hopper.cuh). The work is cut evenly over the multiprocessors
// (gemv_parts.cuh).
#pragma once
#include "ops/matmul/cuda/exact16/gemv_parts.cuh"
#include "ops/matmul/cuda/exact16/nbits/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kBits, int kSub, int kRows, int kGroups>
struct NbitsGemv {
  using Stage = NbitsStage<kBits, kSub, kRows, 1, kGroups>;
  static constexpr int kThreads = (kGroups + 1) * kWarpgroup;
  static constexpr int kMost = (220 << 10) / Stage::kBytes, kStages = kMost < 16 ? kMost : 16;
  static constexpr int kShared = kStages * Stage::kBytes + 1024;
  static constexpr int kSums = kRows / 2;
  static constexpr bool kApart = kSub > 1 && kRows <= 32;  // sums of all groups of a chunk at once

  // One thread. Packed weights may be read before the grids ahead have ended: a ring of them.
  __device__ static void produce(const NbitsTogether& all, const GemvWork& w, bool packed, uint32_t shared,
                                 Ring ring) {
    const int first = w.first_unit(blockIdx.x), last = w.first_unit(blockIdx.x + 1);
    const uint32_t bytes = Stage::expected(all.of[0].zeros != nullptr);
    auto weights = [&](const GemvTile& at, uint32_t to, uint32_t full) {
      expect_bytes(full, bytes);
      const int product = all.product_of(at.column);
      copy_bulk_once(to, all.of[product].block(at.column - all.first[product], at.chunk, kBits),
                     Stage::kWeights, full);
    };
    const int ahead = !packed ? 0 : last - first < kStages ? last - first : kStages;
    uint32_t stage = 0;
    for_gemv_units(w, first, first + ahead, [&](const GemvTile& at) {
      weights(at, shared + stage * Stage::kBytes, ring.full + stage * 8);
      ++stage;
    });
    wait_for_previous_grid();
    int left = ahead;  // stages that have their weights
    for_gemv_units(w, first, last, [&](const GemvTile& at) {
      const uint32_t to = shared + ring.at * Stage::kBytes, full = ring.full_now();
      wait_barrier(ring.empty_now(), ring.phase ^ 1);
      if (left == 0)
        weights(at, to, full);
      else
        --left;
      const int product = all.product_of(at.column);
      const NbitsProduct& in = all.of[product];
      Stage::load_factors(in, to, full, 0, at.column - all.first[product], at.chunk);
      for (int g = 0; g < kGroups; ++g) {
        int64_t tile = at.row_block * kGroups + g;  // its last one twice: results that are not stored
        if (tile >= in.a.tiles) tile = in.a.tiles - 1;
        copy_bulk(to + Stage::kAtActivations + g * Stage::kActivations, in.a.block(0, tile, at.chunk),
                  Stage::kActivations, full);
        Stage::load_sums(in, to, full, g, tile, at.chunk);
      }
      ring.next();
    });
  }

  __device__ static void join(int64_t (&sum)[kSums], const int (&acc)[kRows], const NbitsProduct& in,
                              uint32_t at, int group, int sub) {
    NbitsJoin<kRows>::add(sum, acc, at + Stage::kAtT + sub * kBlockRows * 4,
                          at + Stage::kAtZeros + sub * kBlockRows * 4,
                          at + Stage::kAtSums + group * Stage::kSums + sub * kRows * 4, in.zeros != nullptr);
  }
  __device__ static void leave(uint32_t empty) {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) arrive(empty);
  }

  // One group for all of K: the products of up to kWholePiece k stay in 32 bits.
  __device__ static void sum_whole(int64_t (&sum)[kSums], uint32_t shared, Ring& ring, int group, int chunk,
                                   int end) {
    constexpr int kMostChunks = kWholePiece / kBlockK;
    while (chunk < end) {
      const int stop = end - chunk > kMostChunks ? chunk + kMostChunks : end;
      int acc[kRows];
      uint32_t previous = 0;
      for (int adds = 0; chunk < stop; ++chunk, adds = 1) {
        wait_barrier(ring.full_now(), ring.phase);
        const uint32_t at = shared + ring.at * Stage::kBytes;
        multiply_chunk<kBits>(acc, at, at + Stage::kAtActivations + group * Stage::kActivations, adds);
        if constexpr (kBits == 8) {
          wait_products<1>();
          if (adds) leave(previous);
          previous = ring.empty_now();
        } else {  // its operands are in registers, which the next chunk's take
          wait_products<0>();
          leave(ring.empty_now());
        }
        ring.next();
      }
      if constexpr (kBits == 8) {
        wait_products<0>();
        leave(previous);
      }
      products_ended(acc);
#pragma unroll
      for (int i = 0; i < kSums; ++i) sum[i] += int64_t{256} * acc[i] + acc[kSums + i];
    }
  }
  __device__ static void sum_groups(int64_t (&sum)[kSums], const NbitsProduct& in, uint32_t shared,
                                    Ring& ring, int group, int chunk, int end) {
    for (; chunk < end; ++chunk) {
      wait_barrier(ring.full_now(), ring.phase);
      const uint32_t at = shared + ring.at * Stage::kBytes;
      const uint32_t activations = at + Stage::kAtActivations + group * Stage::kActivations;
      if constexpr (kSub == 1) {
        int acc[kRows];
        multiply_chunk<kBits>(acc, at, activations, 0);
        wait_products<0>();
        products_ended(acc);
        join(sum, acc, in, at, group, 0);
      } else if constexpr (kApart) {
        const WeightOperands<kBits> w(at);
        int acc[kSub][kRows];
        begin_products();
#pragma unroll
        for (int i = 0; i < kSub; ++i) multiply(acc[i], w.step(i), operand(activations) + 2 * i, 0);
        commit_products();
        wait_products<0>();
#pragma unroll
        for (int i = 0; i < kSub; ++i) {
          products_ended(acc[i]);
          join(sum, acc[i], in, at, group, i);
        }
      } else {
#pragma unroll 1
        for (int i = 0; i < kSub; ++i) {
          int acc[kRows];
          multiply_step(acc, std::integral_constant<int, kBits>{}, at, operand(activations), i);
          commit_products();
          wait_products<0>();
          products_ended(acc);
          join(sum, acc, in, at, group, i);
        }
      }
      leave(ring.empty_now());
      ring.next();
    }
  }

  __device__ static void consume(const NbitsTogether& all, const GemvWork& w, uint32_t shared, Ring ring,
                                 int group) {
    const int last = w.first_unit(blockIdx.x + 1);
    wait_for_previous_grid();
    for (int unit = w.first_unit(blockIdx.x); unit < last;) {
      const GemvTile tile = gemv_tile_at(w, unit, last);
      int64_t sum[kSums] = {};
      if constexpr (kSub == 0)
        sum_whole(sum, shared, ring, group, tile.chunk, tile.end);
      else
        sum_groups(sum, all.of[0], shared, ring, group, tile.chunk, tile.end);
      const bool whole = tile.chunk == 0 && tile.end == w.chunks;
      if (whole || GemvParts<kRows, kGroups>::join(w, unit, group, sum)) {
        const int product = all.product_of(tile.column);
        store_nbits<kBits, kSub == 0, kRows>(all.of[product], tile.column - all.first[product],
                                             int64_t{tile.row_block} * kGroups + group,
                                             [&](int i) { return sum[i]; });
      }
      unit += tile.end - tile.chunk;
    }
  }
};

template <int kBits, int kSub, int kRows, int kGroups>
__global__ void __launch_bounds__((kGroups + 1) * kWarpgroup, 1)
    nbits_gemv_kernel(const __grid_constant__ NbitsTogether in, GemvWork work, bool packed) {
  using R = NbitsGemv<kBits, kSub, kRows, kGroups>;
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * R::kStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const Ring ring{shared_address(barriers), shared_address(barriers + R::kStages), R::kStages};
  trigger_next_grid();
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < R::kStages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, kGroups * kWarpgroup / kWarp);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int group = threadIdx.x / kWarpgroup;
  if (group == kGroups) {
    if (threadIdx.x % kWarpgroup == 0) R::produce(in, work, packed, shared, ring);
  } else {
    R::consume(in, work, shared, ring, group);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
