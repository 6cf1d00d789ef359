// The product of few rows (hopper.cuh). The work is cut evenly over the multiprocessors
// (gemv_parts.cuh).
#pragma once
#include "ops/matmul/cuda/exact16/gemv_parts.cuh"
#include "ops/matmul/cuda/exact16/nbits/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kBits, int kSub, int kRows, int kGroups>
struct NbitsGemvSizes {
  using Stage = NbitsStage<kBits, kSub, kRows, 1, kGroups>;
  static constexpr int kStages = gemv_stages(Stage::kBytes, 16);
  using Frame = ProductFrame<kGroups, kWarpgroup / kWarp, 1, kStages, kStages * Stage::kBytes, 0, 0, true>;
};

template <int kBits, int kSub, int kRows, int kGroups>
struct NbitsGemv : NbitsGemvSizes<kBits, kSub, kRows, kGroups>::Frame {
  using Stage = typename NbitsGemvSizes<kBits, kSub, kRows, kGroups>::Stage;
  using Frame = typename NbitsGemvSizes<kBits, kSub, kRows, kGroups>::Frame;
  static constexpr int kSums = kRows / 2;
  static constexpr bool kApart = kSub > 1 && kRows <= 32;  // sums of all groups of a chunk at once
  NbitsTogether all;
  GemvWork w;
  bool packed;
  __device__ static uint32_t stages() { return Frame::kStages; }
  __device__ static uint32_t stage_bytes() { return Stage::kBytes; }

  __device__ void produce(Ring ring) const {
    const uint32_t bytes = Stage::expected(all.of[0].zeros != nullptr);
    auto weights = [&](const GemvTile& at, uint32_t to, uint32_t full) {
      expect_bytes(full, bytes);
      const int product = all.product_of(at.column);
      copy_bulk_once(to, all.of[product].block(at.column - all.first[product], at.chunk, kBits),
                     Stage::kWeights, full);
    };
    auto rows = [&](const GemvTile& at, uint32_t to, uint32_t full) {
      const int product = all.product_of(at.column);
      const NbitsProduct& in = all.of[product];
      Stage::load_factors(in, to, full, 0, at.column - all.first[product], at.chunk);
      for (int g = 0; g < kGroups; ++g) {
        const int64_t tile = gemv_row_tile(at, kGroups, g, in.a.tiles);
        copy_bulk(to + Stage::kAtActivations + g * Stage::kActivations, in.a.block(0, tile, at.chunk),
                  Stage::kActivations, full);
        Stage::load_sums(in, to, full, g, tile, at.chunk);
      }
    };
    produce_gemv_units(
        w, packed, ring, weights, [](const GemvTile&) {}, rows);
  }

  __device__ static void join(int64_t (&sum)[kSums], const int (&acc)[kRows], const NbitsProduct& in,
                              uint32_t at, int group, int sub) {
    NbitsJoin<kRows>::add(sum, acc, at + Stage::kAtT + sub * kBlockRows * 4,
                          at + Stage::kAtZeros + sub * kBlockRows * 4,
                          at + Stage::kAtSums + group * Stage::kSums + sub * kRows * 4, in.zeros != nullptr);
  }
  // One group for all of K: the products of up to kWholePiece k stay in 32 bits.
  __device__ static void sum_whole(int64_t (&sum)[kSums], Ring& ring, int group, int chunks) {
    constexpr int kMostChunks = kWholePiece / kBlockK;
    for (int left = chunks; left > 0; left -= kMostChunks) {
      int acc[kRows];
      multiply_chunks<Frame, kBits>(acc, ring, left < kMostChunks ? left : kMostChunks, 0,
                                    Stage::kAtActivations + group * Stage::kActivations);
#pragma unroll
      for (int i = 0; i < kSums; ++i) sum[i] += int64_t{256} * acc[i] + acc[kSums + i];
    }
  }
  __device__ static void sum_groups(int64_t (&sum)[kSums], const NbitsProduct& in, Ring& ring, int group,
                                    int chunks) {
    for (; chunks > 0; --chunks) {
      wait_barrier(ring.full_now(), ring.phase);
      const uint32_t at = ring.stage_now();
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
      Frame::leave(ring.empty_now());
      ring.next();
    }
  }

  __device__ void consume(Ring ring, int group) const {
    wait_for_previous_grid();
    for_gemv_tiles(w, [&](const GemvTile& tile, int unit) {
      int64_t sum[kSums] = {};
      if constexpr (kSub == 0)
        sum_whole(sum, ring, group, tile.end - tile.chunk);
      else
        sum_groups(sum, all.of[0], ring, group, tile.end - tile.chunk);
      if (!GemvParts<kRows, kGroups>::complete(w, tile, unit, group, sum)) return;
      const int product = all.product_of(tile.column);
      store_nbits<kBits, kSub == 0, kRows>(all.of[product], tile.column - all.first[product],
                                           int64_t{tile.row_block} * kGroups + group,
                                           [&](int i) { return sum[i]; });
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
