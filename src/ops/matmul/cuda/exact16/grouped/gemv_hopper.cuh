// The grouped product of few rows of each matrix on Hopper: weights are the operand of 64 rows,
// activations the other, h and l plane stacked, so each weight that is chosen is read once. The
// blocks of weights are cut evenly over the multiprocessors; the parts of a tile meet as 64-bit
// integers (exact16.6).
#pragma once
#include "ops/matmul/cuda/exact16/grouped/product.h"
#include "ops/matmul/cuda/exact16/wgmma.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kRows>
struct GroupedGemv {
  static constexpr int kThreads = 2 * kWarpgroup;
  static constexpr int kActivations = 2 * kRows * kBlockK;  // bytes
  static constexpr int kStage = 2 * kPlane + kActivations;
  static constexpr int kMost = (220 << 10) / kStage;
  static constexpr int kStages = kMost < 12 ? kMost : 12;
  static constexpr int kShared = kStages * kStage + 1024;
  static constexpr int kSums = kRows / 2;  // of a thread

  struct Stretch {
    GroupedItem item;
    int chunk, end;  // chunks of this block
  };
  __device__ static Stretch stretch_at(const GroupedExact& in, int unit, int last) {
    const int chunk = unit % in.chunks, rest = last - unit;
    return {grouped_item(in, unit / in.chunks, in.column_end[in.products - 1]), chunk,
            rest < in.chunks - chunk ? chunk + rest : in.chunks};
  }

  __device__ static void produce(const GroupedExact& in, const GroupedWork& w, uint32_t shared, Ring ring) {
    const int last = w.first_unit(blockIdx.x + 1);
    for (int unit = w.first_unit(blockIdx.x); unit < last;) {
      const Stretch stretch = stretch_at(in, unit, last);
      const GroupedColumn of = column_at(in, in.column_end, stretch.item.column);
      const uint8_t* matrix = matrix_of(in, of.product, in.tiles[stretch.item.tile].matrix);
      const uint8_t* b = block_of_matrix(in, matrix, of.column) + int64_t{stretch.chunk} * (2 * kPlane);
      const uint8_t* a = in.a.block(0, stretch.item.tile, stretch.chunk);
      unit += stretch.end - stretch.chunk;
      for (int left = stretch.end - stretch.chunk; left > 0; --left, a += kActivations, b += 2 * kPlane) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = shared + ring.at * kStage, full = ring.full_now();
        expect_bytes(full, kStage);
        copy_bulk(to, b, 2 * kPlane, full);
        copy_bulk(to + 2 * kPlane, a, kActivations, full);
        ring.next();
      }
    }
  }

  // This block's sums of an item, and then, in the block that finishes last, those of all blocks.
  __device__ static bool join_parts(const GroupedExact& in, const GroupedWork& w, int unit,
                                    int64_t (&sum)[kSums]) {
    __shared__ uint32_t finished_before;
    const int t = threadIdx.x, begin = unit / in.chunks * in.chunks;
    const int lead = w.block_of(begin), end = w.block_of(begin + in.chunks - 1);
    auto part_of = [&](int block) {  // the lead's is its last item, the others' their first
      const int slot = block * 2 + (block == lead ? 1 : 0);
      return reinterpret_cast<longlong2*>(in.sums + int64_t{slot} * kSums * kWarpgroup) + t;
    };
    longlong2* mine = part_of(blockIdx.x);
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i) mine[i * kWarpgroup] = make_longlong2(sum[2 * i], sum[2 * i + 1]);
    __threadfence();
    sync_warpgroup(0);
    if (t == 0) finished_before = atomicAdd(in.counters + lead, 1u);
    sync_warpgroup(0);
    const bool last = finished_before == static_cast<uint32_t>(end - lead);
    sync_warpgroup(0);
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

  __device__ static void store(const GroupedExact& in, const GroupedItem& item, const int64_t (&sum)[kSums]) {
    const int t = threadIdx.x, lane = t % kWarp;
    const GroupedTile tile = in.tiles[item.tile];
    const GroupedColumn of = column_at(in, in.column_end, item.column);
    const int32_t* scales = scales_of_matrix(in, of.product, tile.matrix);
    const int64_t n = in.n[of.product];
    const int64_t n0 = int64_t{of.column} * kBlockRows + t / kWarp * 16 + lane / 4;
    const int32_t eb[2] = {scales[n0], scales[n0 + 8]};  // of all columns of a tile
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = 8 * j + lane % 4 * 2 + i;
        if (at >= tile.rows) continue;
        const int slot = item.tile * kRows + at;
        const int32_t row = in.row[slot], ea = in.a.scales[slot];
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (n0 + 8 * half < n)
            store_grouped(in.out[of.product], n, row, n0 + 8 * half,
                          exact_result(sum[4 * j + 2 * half + i], ea, eb[half]));
      }
  }

  __device__ static void consume(const GroupedExact& in, const GroupedWork& w, uint32_t shared, Ring ring) {
    const bool first_thread = threadIdx.x == 0;
    const int last = w.first_unit(blockIdx.x + 1);
    for (int unit = w.first_unit(blockIdx.x); unit < last;) {
      const Stretch stretch = stretch_at(in, unit, last);
      int from_h[kRows], from_l[kRows];  // of the weights' planes: with h of all rows, then with l
#pragma unroll
      for (int q = 0; q < kRows; ++q) from_h[q] = from_l[q] = 0;
      uint32_t previous = 0;
      for (int chunk = stretch.chunk; chunk < stretch.end; ++chunk) {
        wait_barrier(ring.full_now(), ring.phase);
        const uint32_t at = shared + ring.at * kStage;
        const uint64_t h = operand(at), l = operand(at + kPlane), x = operand(at + 2 * kPlane);
        begin_products();
#pragma unroll
        for (int step = 0; step < kBlockK / 32; ++step) {
          multiply_add(from_h, h + 2 * step, x + 2 * step);
          multiply_add(from_l, l + 2 * step, x + 2 * step);
        }
        commit_products();
        wait_products<1>();
        if (chunk > stretch.chunk && first_thread) arrive(previous);
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
      const bool whole = stretch.chunk == 0 && stretch.end == in.chunks;
      if (whole || join_parts(in, w, unit, sum)) store(in, stretch.item, sum);
      unit += stretch.end - stretch.chunk;
    }
  }
};

template <int kRows>
__global__ void __launch_bounds__(2 * kWarpgroup, 1) grouped_gemv_kernel(GroupedExact in) {
  using R = GroupedGemv<kRows>;
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * R::kStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const Ring ring{shared_address(barriers), shared_address(barriers + R::kStages), R::kStages};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < R::kStages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  trigger_and_wait();
  const GroupedWork w = *in.work;
  if (static_cast<int>(blockIdx.x) >= w.grid) return;
  if (threadIdx.x < kWarpgroup)
    R::consume(in, w, shared, ring);
  else if (threadIdx.x == kWarpgroup)
    R::produce(in, w, shared, ring);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
