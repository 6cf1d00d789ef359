// The product of few rows on Hopper: weights are the operand of 64 rows, activations the other, h
// and l plane stacked, so each weight is read once (gemv_parts.cuh has who reads which). In tiles
// lower than 64 rows the rest of the operand is what lies behind them, whose sums are not read.
#pragma once
#include "ops/matmul/cuda/exact16/gemv_parts.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGemvRing = 216 << 10;

// kRows of each of kGroups warpgroups. Operands of 64 rows may end behind a ring of lower tiles.
template <int kRows, int kGroups>
struct ExactGemv : ProductFrame<kGroups, 1, 1, 24, kGemvRing + kPlane, kGroups == 2 ? 56 : 0,
                                kGroups == 2 ? 224 : 0, true> {
  static constexpr int kActivations = 2 * kRows * kBlockK;  // bytes of a group
  static constexpr int kSums = kRows / 2;                   // of a thread
  ExactTogether in;
  GemvWork w;
  bool packed;
  __device__ int plane_bytes() const { return w.height * kBlockK; }
  __device__ uint32_t stage_bytes() const { return 2 * plane_bytes() + kGroups * kActivations; }
  __device__ uint32_t stages() const {
    const uint32_t most = kGemvRing / stage_bytes();
    return most < ExactGemv::kStages ? most : ExactGemv::kStages;
  }

  // The weights of a tile: one or two pieces of rows, each of two planes.
  struct Weights {
    const uint8_t* at[2];
    int bytes[2];  // of a plane
  };
  __device__ Weights weights_of(int tile) const {
    int row = tile * w.height, left = in.columns * kBlockRows - row;
    if (left > w.height) left = w.height;
    Weights weights;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int column = row / kBlockRows, from = row % kBlockRows;
      const int rows = left < kBlockRows - from ? left : kBlockRows - from;
      weights.bytes[i] = rows * kBlockK;
      if (rows > 0) {
        const ExactTogether::One& one = in.of[product_of(in, column)];
        weights.at[i] = one.b.block(0, column - one.first, 0) + from * kBlockK;
      }
      row += rows, left -= rows;
    }
    return weights;
  }
  // Calls f(from, plane, offset in the plane, bytes) for each piece of a chunk.
  template <class Fn>
  __device__ static void for_pieces(const Weights& weights, int chunk, Fn f) {
    const int64_t at = int64_t{chunk} * 2 * kPlane;
    if (weights.bytes[0] == kPlane) return f(weights.at[0] + at, 0, 0, 2 * kPlane);
    for (int plane = 0; plane < 2; ++plane) {
      f(weights.at[0] + at + plane * kPlane, plane, 0, weights.bytes[0]);
      if (weights.bytes[1]) f(weights.at[1] + at + plane * kPlane, plane, weights.bytes[0], weights.bytes[1]);
    }
  }

  __device__ void produce(Ring ring) const {
    const int plane = plane_bytes();
    Weights source{};
    int tile = -1;
    auto find = [&](const GemvTile& at) {
      if (at.column != tile) source = weights_of(tile = at.column);
    };
    auto weights = [&](const GemvTile& at, uint32_t to, uint32_t full) {
      find(at);
      expect_bytes(full, 2 * (source.bytes[0] + source.bytes[1]) + kGroups * kActivations);
      for_pieces(source, at.chunk, [&](const uint8_t* from, int of, int offset, int bytes) {
        copy_bulk_once(to + of * plane + offset, from, bytes, full);
      });
    };
    auto prefetch = [&](const GemvTile& at) {
      find(at);
      for_pieces(source, at.chunk,
                 [&](const uint8_t* from, int, int, int bytes) { prefetch_bulk(from, bytes); });
    };
    produce_gemv_units(
        w, packed, ring, weights, prefetch, [&](const GemvTile& at, uint32_t to, uint32_t full) {
          for (int g = 0; g < kGroups; ++g)
            copy_bulk(to + 2 * plane + g * kActivations,
                      in.a.block(0, gemv_row_tile(at, kGroups, g, in.a.tiles), at.chunk), kActivations, full);
        });
  }

  // Where a thread's results of a tile go, and what they need besides the sums. A tile lower than a
  // block may end in another product than it begins in.
  static constexpr int kProducts = kRows > 32 ? 1 : 2;
  struct Results {
    float* out[kProducts];
    const float* addend[kProducts];
    int64_t n[kProducts];  // columns
    bool inside[2];        // columns of the thread
    int rows_left;
    int32_t eb[2], ea[kRows / 4];
    float x[kSums];
    __device__ int64_t at(int m, int c) const {
      return kProducts == 1 ? m * n[0] + 8 * c : m * n[c % kProducts];
    }
  };
  // All loads come before the first store, over which the compiler does not move them.
  __device__ void prepare(const GemvTile& tile, int group, Results& r) const {
    const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
    const int64_t m0 = int64_t{tile.row_block * kGroups + group} * kRows + lane % 4 * 2;
    r.rows_left = in.s.m - m0 < kRows ? static_cast<int>(in.s.m - m0) : kRows;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int in_tile = t / kWarp * 16 + lane / 4 + 8 * c, row = tile.column * w.height + in_tile;
      const int column = kProducts == 1 ? tile.column : row / kBlockRows;
      r.inside[c] = in_tile < w.height && column < in.columns;
      const ExactTogether::One& one = in.of[product_of(in, r.inside[c] ? column : 0)];
      const int64_t n = int64_t{column - one.first} * kBlockRows + row % kBlockRows;
      r.inside[c] = r.inside[c] && n < one.n;
      r.eb[c] = r.inside[c] ? one.b.scales[n] : 0;
      if (c >= kProducts) continue;
      r.n[c] = one.n;
      r.out[c] = one.out + m0 * one.n + n;
      r.addend[c] = one.addend ? one.addend + m0 * one.n + n : nullptr;
    }
    const int32_t* const scales = in.a.scales + m0;
#pragma unroll
    for (int j = 0; j < kRows / 4; ++j) {
      const int m = j / 2 * 8 + j % 2;
      r.ea[j] = m < r.rows_left ? scales[m] : 0;
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int m = i / 4 * 8 + i % 2, c = i / 2 % 2;
      const float* const from = r.addend[c % kProducts];
      r.x[i] = from && m < r.rows_left && r.inside[c] ? from[r.at(m, c)] : 0;
    }
  }
  __device__ static void store(const Results& r, const int64_t (&sum)[kSums]) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int m = i / 4 * 8 + i % 2, c = i / 2 % 2;
      if (m >= r.rows_left || !r.inside[c]) continue;
      const float y = exact_result(sum[i], r.ea[i / 4 * 2 + i % 2], r.eb[c]);
      r.out[c % kProducts][r.at(m, c)] = r.addend[c % kProducts] ? with_addend(y, r.x[i]) : y;
    }
  }

  __device__ void consume(Ring ring, int group) const {
    const int plane = plane_bytes();
    wait_for_previous_grid();
    for_gemv_tiles(w, [&](const GemvTile& tile, int unit) {
      Results results;
      if (kRows <= 32) prepare(tile, group, results);
      StackedSums<kRows> sums;
      this->multiply_stages(ring, tile.end - tile.chunk, [&](uint32_t at, int) {
        const uint32_t x = at + 2 * plane + group * kActivations;
        sums.multiply(operand(at), operand(at + plane), operand(x));
      });
      int64_t sum[kSums];
      sums.join(sum);
      if (GemvParts<kRows, kGroups>::complete(w, tile, unit, group, sum)) {
        if (kRows > 32) prepare(tile, group, results);
        store(results, sum);
      }
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
