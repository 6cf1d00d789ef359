// The grouped product of many rows on Hopper: 128 columns of two warpgroups, as the operand of 64
// rows of each, by a tile's rows. A tile has as many rows as it needs, in steps of 16; the three
// sums of 32 bits are in registers.
#pragma once
#include <type_traits>

#include "ops/matmul/cuda/exact16/grouped/product.h"
#include "ops/matmul/cuda/exact16/wgmma.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroupedStages = 3, kGroupedThreads = 3 * kWarpgroup;
constexpr int kGroupedStage = 4 * kPlane + 2 * kTallestTile * kBlockK;  // h and l of 64 columns, twice; h, l
constexpr int kGroupedShared = kGroupedStages * kGroupedStage + 1024;
constexpr int kRowStep = 16;

#define INVAR_R24 INVAR_R16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define INVAR_R40 INVAR_R32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define INVAR_R48 INVAR_R40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define INVAR_R56 INVAR_R48 ", %48, %49, %50, %51, %52, %53, %54, %55"
__device__ inline void multiply_add(int (&d)[24], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("48", INVAR_R24, "%24", "%25")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[40], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("80", INVAR_R40, "%40", "%41")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[48], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("96", INVAR_R48, "%48", "%49")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32),
                 INVAR_D8(d, 40)
               : "l"(a), "l"(b));
}
__device__ inline void multiply_add(int (&d)[56], uint64_t a, uint64_t b) {
  asm volatile(INVAR_WGMMA("112", INVAR_R56, "%56", "%57")
               : INVAR_D8(d, 0), INVAR_D8(d, 8), INVAR_D8(d, 16), INVAR_D8(d, 24), INVAR_D8(d, 32),
                 INVAR_D8(d, 40), INVAR_D8(d, 48)
               : "l"(a), "l"(b));
}

__device__ inline int rows_in_steps(int rows) {
  return (rows + kRowStep - 1) / kRowStep * kRowStep;
}
__device__ inline int grouped_items(const GroupedExact& in) {
  return in.work->tiles * in.pair_end[in.products - 1];
}

// Where an item's blocks begin. A tile of columns that does not exist is replaced by the one before
// it; its results are not stored.
struct GroupedSource {
  const uint8_t *a, *b;
  int64_t second;  // bytes from b to the second tile of columns
  uint32_t bytes;  // of a plane of a
};
__device__ inline GroupedSource grouped_source(const GroupedExact& in, int i) {
  const GroupedItem item = grouped_item(in, i, in.pair_end[in.products - 1]);
  const GroupedTile tile = in.tiles[item.tile];
  const GroupedColumn of = column_at(in, in.pair_end, item.column);
  const bool two = 2 * of.column + 1 < columns_of(in, of.product);
  return {
      in.a.block(0, item.tile, 0), block_of_matrix(in, matrix_of(in, of.product, tile.matrix), 2 * of.column),
      two ? int64_t{in.chunks} * (2 * kPlane) : 0, static_cast<uint32_t>(rows_in_steps(tile.rows)) * kBlockK};
}

// One thread queues the copies of all items of its block.
__device__ inline void produce_grouped(const GroupedExact& in, uint32_t shared, Ring ring) {
  const int all = grouped_items(in);
  for (int i = blockIdx.x; i < all; i += gridDim.x) {
    GroupedSource from = grouped_source(in, i);
    for (int left = in.chunks; left > 0; --left) {
      wait_barrier(ring.empty_now(), ring.phase ^ 1);
      const uint32_t to = shared + ring.at * kGroupedStage, full = ring.full_now();
      expect_bytes(full, 4 * kPlane + 2 * from.bytes);
      copy_bulk(to, from.b, 2 * kPlane, full);
      copy_bulk(to + 2 * kPlane, from.b + from.second, 2 * kPlane, full);
      copy_bulk(to + 4 * kPlane, from.a, from.bytes, full);
      copy_bulk(to + 4 * kPlane + kTallestTile * kBlockK, from.a + kTallestTile * kBlockK, from.bytes, full);
      ring.next();
      from.a += 2 * kTallestTile * kBlockK, from.b += 2 * kPlane;
    }
  }
}
// The rows of a tile and their scales, for a warpgroup's epilogue.
struct GroupedRows {
  int32_t row[kTallestTile], scale[kTallestTile];
};

// An item's products by one warpgroup, and their results. kRows: those of the tile, in steps.
template <int kRows>
__device__ inline void consume_item(const GroupedExact& in, const GroupedItem& item, const GroupedTile& tile,
                                    uint32_t shared, Ring& ring, int group, GroupedRows& rows) {
  constexpr int kSums = kRows / 2;  // of a thread
  const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
  const GroupedColumn of = column_at(in, in.pair_end, item.column);
  const int64_t n = in.n[of.product];
  const int64_t n0 = (int64_t{of.column} * 2 + group) * kBlockRows + t / kWarp * 16 + lane / 4;
  const int32_t* scales = scales_of_matrix(in, of.product, tile.matrix);
  const int32_t eb[2] = {n0 < n ? scales[n0] : 0, n0 + 8 < n ? scales[n0 + 8] : 0};
  const int64_t slot = int64_t{item.tile} * kTallestTile + t;
  const int32_t row = t < tile.rows ? in.row[slot] : 0, scale = t < tile.rows ? in.a.scales[slot] : 0;
  int high[kSums], cross[kSums], low[kSums];
#pragma unroll
  for (int q = 0; q < kSums; ++q) high[q] = cross[q] = low[q] = 0;
  uint32_t previous = 0;
  for (int chunk = 0; chunk < in.chunks; ++chunk) {
    wait_barrier(ring.full_now(), ring.phase);
    const uint32_t at = shared + ring.at * kGroupedStage;
    const uint64_t wh = operand(at + group * 2 * kPlane), wl = operand(at + group * 2 * kPlane + kPlane);
    const uint64_t xh = operand(at + 4 * kPlane), xl = operand(at + 4 * kPlane + kTallestTile * kBlockK);
    begin_products();
#pragma unroll
    for (int step = 0; step < kBlockK / 32; ++step) {  // 32 bytes are 2 in an operand's address
      multiply_add(high, wh + 2 * step, xh + 2 * step);
      multiply_add(cross, wh + 2 * step, xl + 2 * step);
      multiply_add(low, wl + 2 * step, xl + 2 * step);
      multiply_add(cross, wl + 2 * step, xh + 2 * step);
    }
    commit_products();
    wait_products<1>();
    if (chunk > 0 && t == 0) arrive(previous);
    previous = ring.empty_now();
    ring.next();
  }
  wait_products<0>();
  if (t == 0) arrive(previous);
  sync_warpgroup(group);  // those of the item before have been read
  rows.row[t] = row, rows.scale[t] = scale;
  auto store = [&](auto usual) {
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = 8 * j + lane % 4 * 2 + i;
        if (at >= tile.rows) continue;
        const int32_t to = rows.row[at], ea = rows.scale[at];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int q = 4 * j + 2 * half + i;
          const int64_t sum = exact_sum(high[q], cross[q], low[q]);
          const float y = usual() ? usual_result(sum, ea, eb[half]) : exact_result(sum, ea, eb[half]);
          if (n0 + 8 * half < n) store_grouped(in.out[of.product], n, to, n0 + 8 * half, y);
        }
      }
  };
  if (all_in_warpgroup(group, usual_scale(scale) && usual_scale(eb[0]) && usual_scale(eb[1])))
    store(std::true_type{});
  else
    store(std::false_type{});
}

__device__ inline void consume_grouped(const GroupedExact& in, uint32_t shared, Ring ring, int group) {
  __shared__ GroupedRows rows[2];
  const int pairs = in.pair_end[in.products - 1], all = grouped_items(in);
  for (int i = blockIdx.x; i < all; i += gridDim.x) {
    const GroupedItem item = grouped_item(in, i, pairs);
    const GroupedTile tile = in.tiles[item.tile];
    switch (rows_in_steps(tile.rows) / kRowStep) {
      case 1: consume_item<16>(in, item, tile, shared, ring, group, rows[group]); break;
      case 2: consume_item<32>(in, item, tile, shared, ring, group, rows[group]); break;
      case 3: consume_item<48>(in, item, tile, shared, ring, group, rows[group]); break;
      case 4: consume_item<64>(in, item, tile, shared, ring, group, rows[group]); break;
      case 5: consume_item<80>(in, item, tile, shared, ring, group, rows[group]); break;
      case 6: consume_item<96>(in, item, tile, shared, ring, group, rows[group]); break;
      case 7: consume_item<112>(in, item, tile, shared, ring, group, rows[group]); break;
      default: consume_item<128>(in, item, tile, shared, ring, group, rows[group]);
    }
  }
}

__global__ void __launch_bounds__(kGroupedThreads, 1) grouped_gemm_kernel(GroupedExact in) {
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * kGroupedStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const Ring ring{shared_address(barriers), shared_address(barriers + kGroupedStages), kGroupedStages};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < kGroupedStages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  trigger_and_wait();
  const int group = threadIdx.x / kWarpgroup;
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 2 * kWarpgroup) produce_grouped(in, shared, ring);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume_grouped(in, shared, ring, group);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
