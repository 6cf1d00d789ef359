// The product of few rows on Hopper: weights are the operand of 64 rows, activations the other, h
// and l plane stacked, so each weight is read once (gemv_parts.cuh has who reads which). In tiles
// lower than 64 rows the rest of the operand is what lies behind them, whose sums are not read.
#pragma once
#include "ops/matmul/cuda/exact16/gemv_parts.cuh"
#include "ops/matmul/cuda/exact16/wgmma.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// kRows of each of kGroups warpgroups.
template <int kRows, int kGroups>
struct GemvHopper {
  static constexpr int kThreads = (kGroups + 1) * kWarpgroup;
  static constexpr int kActivations = 2 * kRows * kBlockK;  // bytes of a group
  static constexpr int kRing = 216 << 10;
  static constexpr int kMostStages = 24;
  // Operands of 64 rows may end behind a ring of lower tiles.
  static constexpr int kShared = kRing + kPlane + 1024;
  static constexpr int kSums = kRows / 2;  // of a thread
  __host__ __device__ static int stage_bytes(const GemvWork& w) {
    return 2 * w.height * kBlockK + kGroups * kActivations;
  }
  __host__ __device__ static int stages(const GemvWork& w) {
    const int most = kRing / stage_bytes(w);
    return most < kMostStages ? most : kMostStages;
  }

  using Tile = GemvTile;

  // The weights of a tile: one or two pieces of rows, each of two planes.
  struct Weights {
    const uint8_t* at[2];
    int bytes[2];  // of a plane
  };
  __device__ static Weights weights_of(const ExactTogether& in, const GemvWork& w, int tile) {
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

  // One thread. Packed weights may be read before the grids ahead have ended: a ring of them.
  __device__ static void produce(const ExactTogether& in, const GemvWork& w, bool packed, uint32_t shared,
                                 Ring ring) {
    const int first = w.first_unit(blockIdx.x), last = w.first_unit(blockIdx.x + 1);
    const int stage_size = stage_bytes(w), plane_size = w.height * kBlockK;
    Weights source{};
    int tile = -1;
    auto find = [&](const Tile& at) {
      if (at.column != tile) source = weights_of(in, w, tile = at.column);
    };
    auto weights = [&](const Tile& at, uint32_t to, uint32_t full) {
      find(at);
      expect_bytes(full, 2 * (source.bytes[0] + source.bytes[1]) + kGroups * kActivations);
      for_pieces(source, at.chunk, [&](const uint8_t* from, int plane, int offset, int bytes) {
        copy_bulk_once(to + plane * plane_size + offset, from, bytes, full);
      });
    };
    const int stages = static_cast<int>(ring.stages);
    const int ahead = !packed ? 0 : last - first < stages ? last - first : stages;
    uint32_t stage = 0;
    for_gemv_units(w, first, first + ahead, [&](const Tile& at) {
      weights(at, shared + stage * stage_size, ring.full + stage * 8);
      ++stage;
    });
    const int rest = packed ? last - first - ahead : 0;
    const int beyond = rest < w.units_ahead ? rest : w.units_ahead;
    for_gemv_units(w, first + ahead, first + ahead + beyond, [&](const Tile& at) {
      find(at);
      for_pieces(source, at.chunk,
                 [&](const uint8_t* from, int, int, int bytes) { prefetch_bulk(from, bytes); });
    });
    wait_for_previous_grid();
    int left = ahead;  // stages that have their weights
    for_gemv_units(w, first, last, [&](const Tile& at) {
      const uint32_t to = shared + ring.at * stage_size, full = ring.full_now();
      wait_barrier(ring.empty_now(), ring.phase ^ 1);
      if (left == 0)
        weights(at, to, full);
      else
        --left;
      for (int g = 0; g < kGroups; ++g) {
        int64_t tile = at.row_block * kGroups + g;  // its last one twice: results that are not stored
        if (tile >= in.a.tiles) tile = in.a.tiles - 1;
        copy_bulk(to + 2 * plane_size + g * kActivations, in.a.block(0, tile, at.chunk), kActivations, full);
      }
      ring.next();
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
  __device__ static void prepare(const ExactTogether& in, const GemvWork& w, const Tile& tile, int group,
                                 Results& r) {
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

  __device__ static void consume(const ExactTogether& in, const GemvWork& w, uint32_t shared, Ring ring,
                                 int group) {
    const bool first_thread = threadIdx.x % kWarpgroup == 0;
    const int last = w.first_unit(blockIdx.x + 1);
    const int stage_size = stage_bytes(w), plane_size = w.height * kBlockK;
    wait_for_previous_grid();
    for (int unit = w.first_unit(blockIdx.x); unit < last;) {
      const Tile tile = gemv_tile_at(w, unit, last);
      Results results;
      if (kRows <= 32) prepare(in, w, tile, group, results);
      int from_h[kRows], from_l[kRows];  // of the weights' planes: with h of all rows, then with l
#pragma unroll
      for (int q = 0; q < kRows; ++q) from_h[q] = from_l[q] = 0;
      uint32_t previous = 0;
      for (int chunk = tile.chunk; chunk < tile.end; ++chunk) {
        wait_barrier(ring.full_now(), ring.phase);
        const uint32_t at = shared + ring.at * stage_size;
        const uint64_t h = operand(at), l = operand(at + plane_size);
        const uint64_t x = operand(at + 2 * plane_size + group * kActivations);
        begin_products();
#pragma unroll
        for (int step = 0; step < kBlockK / 32; ++step) {
          multiply_add(from_h, h + 2 * step, x + 2 * step);
          multiply_add(from_l, l + 2 * step, x + 2 * step);
        }
        commit_products();
        wait_products<1>();
        if (chunk > tile.chunk && first_thread) arrive(previous);
        previous = ring.empty_now();
        ring.next();
      }
      wait_products<0>();
      if (first_thread) arrive(previous);
      int64_t sum[kSums];
#pragma unroll
      for (int q = 0; q < kSums; ++q)
        sum[q] =
            int64_t{from_h[q]} * 65536 + (int64_t{from_h[kSums + q]} + from_l[q]) * 256 + from_l[kSums + q];
      const bool whole = tile.chunk == 0 && tile.end == w.chunks;
      if (whole || GemvParts<kRows, kGroups>::join(w, unit, group, sum)) {
        if (kRows > 32) prepare(in, w, tile, group, results);
        store(results, sum);
      }
      unit += tile.end - tile.chunk;
    }
  }
};

template <int kRows, int kGroups>
__global__ void __launch_bounds__((kGroups + 1) * kWarpgroup, 1)
    exact16_gemv_kernel(const __grid_constant__ ExactTogether in, GemvWork work, bool packed) {
  using R = GemvHopper<kRows, kGroups>;
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * R::kMostStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const uint32_t stages = R::stages(work);
  const Ring ring{shared_address(barriers), shared_address(barriers + R::kMostStages), stages};
  trigger_next_grid();
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < stages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, kGroups);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int group = threadIdx.x / kWarpgroup;
  if (group == kGroups) {
    if (kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x % kWarpgroup == 0) R::produce(in, work, packed, shared, ring);
  } else {
    if (kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    R::consume(in, work, shared, ring, group);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
