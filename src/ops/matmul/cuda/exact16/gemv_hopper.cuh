// The product of few rows on Hopper: weights are the operand of 64 rows, activations the other, h
// and l plane stacked, so each weight is read once. The work (blocks of weights) is cut evenly over
// the multiprocessors; the parts of a tile meet as 64-bit integers (exact16.6).
#pragma once
#include "ops/matmul/cuda/exact16/select.h"
#include "ops/matmul/cuda/exact16/wgmma.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// kRows of each of kGroups warpgroups.
template <int kRows, int kGroups>
struct GemvHopper {
  static constexpr int kThreads = (kGroups + 1) * kWarpgroup;
  static constexpr int kActivations = 2 * kRows * kBlockK;  // bytes of a group
  static constexpr int kStage = 2 * kPlane + kGroups * kActivations;
  static constexpr int kMost = (220 << 10) / kStage;
  static constexpr int kStages = kMost < 12 ? kMost : 12;
  static constexpr int kShared = kStages * kStage + 1024;
  static constexpr int kSums = kRows / 2;  // of a thread

  struct Tile {
    int column, row_block, chunk, end;  // chunks of this block
  };
  __device__ static Tile tile_at(const GemvWork& w, int unit, int last) {
    const int tile = unit / w.chunks, chunk = unit % w.chunks, rest = last - unit;
    return {tile / w.row_blocks, tile % w.row_blocks, chunk,
            rest < w.chunks - chunk ? chunk + rest : w.chunks};
  }
  // Calls f(tile, chunk, ordinal) for units ordinal `from` to `to` of a block.
  template <class Fn>
  __device__ static void for_units(const GemvWork& w, int from, int to, Fn f) {
    Tile at = tile_at(w, from, to);
    for (int unit = from; unit < to; ++unit) {
      f(at);
      if (++at.chunk < w.chunks) continue;
      at.chunk = 0;
      if (++at.row_block < w.row_blocks) continue;
      at.row_block = 0, ++at.column;
    }
  }

  // One thread. Packed weights may be read before the grids ahead have ended: a ring of them.
  __device__ static void produce(const ExactTogether& in, const GemvWork& w, bool packed, uint32_t shared,
                                 Ring ring) {
    const int first = w.first_unit(blockIdx.x), last = w.first_unit(blockIdx.x + 1);
    auto weights = [&](const Tile& at, uint32_t to, uint32_t full) {
      expect_bytes(full, kStage);
      const ExactTogether::One& one = in.of[product_of(in, at.column)];
      copy_bulk(to, one.b.block(0, at.column - one.first, at.chunk), 2 * kPlane, full);
    };
    const int ahead = !packed ? 0 : last - first < kStages ? last - first : kStages;
    uint32_t stage = 0;
    for_units(w, first, first + ahead, [&](const Tile& at) {
      weights(at, shared + stage * kStage, ring.full + stage * 8);
      ++stage;
    });
    wait_for_previous_grid();
    int left = ahead;  // stages that have their weights
    for_units(w, first, last, [&](const Tile& at) {
      const uint32_t to = shared + ring.at * kStage, full = ring.full_now();
      wait_barrier(ring.empty_now(), ring.phase ^ 1);
      if (left == 0)
        weights(at, to, full);
      else
        --left;
      for (int g = 0; g < kGroups; ++g) {
        int64_t tile = at.row_block * kGroups + g;  // its last one twice: results that are not stored
        if (tile >= in.a.tiles) tile = in.a.tiles - 1;
        copy_bulk(to + 2 * kPlane + g * kActivations, in.a.block(0, tile, at.chunk), kActivations, full);
      }
      ring.next();
    });
  }

  // This block's sums of a tile, and then, in the block that finishes last, those of all blocks.
  __device__ static bool join_parts(const GemvWork& w, int unit, int group, int64_t (&sum)[kSums]) {
    __shared__ uint32_t finished_before[kGroups];
    const int t = threadIdx.x % kWarpgroup;
    const int begin = unit / w.chunks * w.chunks;
    const int lead = w.block_of(begin), end = w.block_of(begin + w.chunks - 1);
    auto part_of = [&](int block) {  // the lead's is its last tile, the others' their first
      const int slot = (block * 2 + (block == lead ? 1 : 0)) * kGroups + group;
      return reinterpret_cast<longlong2*>(w.sums + int64_t{slot} * kSums * kWarpgroup) + t;
    };
    longlong2* mine = part_of(blockIdx.x);
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i) mine[i * kWarpgroup] = make_longlong2(sum[2 * i], sum[2 * i + 1]);
    __threadfence();
    sync_warpgroup(group);
    if (t == 0) finished_before[group] = atomicAdd(w.counters + lead * kGroups + group, 1u);
    sync_warpgroup(group);
    const bool last = finished_before[group] == static_cast<uint32_t>(end - lead);
    sync_warpgroup(group);
    if (!last) return false;
    __threadfence();
    for (int block = lead; block <= end; ++block) {
      if (block == static_cast<int>(blockIdx.x)) continue;
      const longlong2* part = part_of(block);
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) {
        const longlong2 two = __ldcg(part + i * kWarpgroup);
        sum[2 * i] += two.x, sum[2 * i + 1] += two.y;
      }
    }
    return true;
  }

  // All loads come before the first store, over which the compiler does not move them.
  __device__ static void store(const ExactTogether& in, const Tile& at, int group,
                               const int64_t (&sum)[kSums]) {
    const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
    const ExactTogether::One& one = in.of[product_of(in, at.column)];
    const int64_t n0 = int64_t{at.column - one.first} * kBlockRows + t / kWarp * 16 + lane / 4;
    const int64_t m0 = int64_t{at.row_block * kGroups + group} * kRows + lane % 4 * 2;
    const int rows_left = in.s.m - m0 < kRows ? static_cast<int>(in.s.m - m0) : kRows;
    const bool inside[2] = {n0 < one.n, n0 + 8 < one.n};
    const int32_t eb[2] = {one.b.scales[n0], one.b.scales[n0 + 8]};  // of all rows of a tile
    const int32_t* const scales = in.a.scales + m0;
    float* const out = one.out + m0 * one.n + n0;
    const float* const from = one.addend + m0 * one.n + n0;
    int32_t ea[kRows / 4];
    float x[kSums];
#pragma unroll
    for (int j = 0; j < kRows / 4; ++j) {
      const int m = j / 2 * 8 + j % 2;
      ea[j] = m < rows_left ? scales[m] : 0;
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int m = i / 4 * 8 + i % 2;
      x[i] = one.addend && m < rows_left && inside[i / 2 % 2] ? from[m * one.n + i / 2 % 2 * 8] : 0;
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int m = i / 4 * 8 + i % 2;
      if (m >= rows_left || !inside[i / 2 % 2]) continue;
      const float y = exact_result(sum[i], ea[i / 4 * 2 + i % 2], eb[i / 2 % 2]);
      out[m * one.n + i / 2 % 2 * 8] = one.addend ? with_addend(y, x[i]) : y;
    }
  }

  __device__ static void consume(const ExactTogether& in, const GemvWork& w, uint32_t shared, Ring ring,
                                 int group) {
    const bool first_thread = threadIdx.x % kWarpgroup == 0;
    const int last = w.first_unit(blockIdx.x + 1);
    wait_for_previous_grid();
    for (int unit = w.first_unit(blockIdx.x); unit < last;) {
      const Tile tile = tile_at(w, unit, last);
      int from_h[kRows], from_l[kRows];  // of the weights' planes: with h of all rows, then with l
#pragma unroll
      for (int q = 0; q < kRows; ++q) from_h[q] = from_l[q] = 0;
      uint32_t previous = 0;
      for (int chunk = tile.chunk; chunk < tile.end; ++chunk) {
        wait_barrier(ring.full_now(), ring.phase);
        const uint32_t at = shared + ring.at * kStage;
        const uint64_t h = operand(at), l = operand(at + kPlane);
        const uint64_t x = operand(at + 2 * kPlane + group * kActivations);
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
      if (whole || join_parts(w, unit, group, sum)) store(in, tile, group, sum);
      unit += tile.end - tile.chunk;
    }
  }
};

template <int kRows, int kGroups>
__global__ void __launch_bounds__((kGroups + 1) * kWarpgroup, 1)
    exact16_gemv_kernel(const __grid_constant__ ExactTogether in, GemvWork work, bool packed) {
  using R = GemvHopper<kRows, kGroups>;
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * R::kStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const Ring ring{shared_address(barriers), shared_address(barriers + R::kStages), R::kStages};
  trigger_next_grid();
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < R::kStages; ++i) {
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
